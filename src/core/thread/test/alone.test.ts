import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { until } from '../../../../lab/servers/until.ts'
import { connect, type Lease, type LeaseEvents, type Locks, subscribe } from '../../../index.ts'

/** The workers that this process started, in order. */
const workers: Worker[] = []
const note = (worker: Worker): void => void workers.push(worker)
beforeEach(() => {
  workers.length = 0
  process.on('worker', note)
})
afterEach(() => void process.off('worker', note))

async function open(path: string): Promise<Locks> {
  const locks = await connect(`sqlite:${path}`, { heartbeat: 'thread', ttl: 3_000, maxBlocked: 60_000 })
  onTestFinished(() => locks.close({ grace: 0 }))
  return locks
}

const newPath = (): string => join(newFolder('alone'), 'leases.db')

/** Collects events until the test ends. */
function listen<Name extends keyof LeaseEvents>(name: Name): LeaseEvents[Name][] {
  const events: LeaseEvents[Name][] = []
  onTestFinished(subscribe(name, event => events.push(event)))
  return events
}

/** How often this process has the file open. */
function openings(path: string): number {
  const links = readdirSync('/proc/self/fd').map(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return '' // closed meanwhile
    }
  })
  return links.filter(link => link === path).length
}

test('S6: over SQLite the thread has the file open only while it renews', async () => {
  const path = newPath()
  const locks = await open(path)
  const renewed = listen('heartbeat')
  await using lease = await locks.acquire('a')
  for (let round = 1; round <= 3; round += 1) {
    await until('it is renewed', () => renewed.length >= round)
    // Each connection opens the -wal; SQLite keeps descriptors of the file itself while another connection has a lock.
    await until('only the main thread has it open', () => openings(`${path}-wal`) === 1)
  }
  lease.assertHeld()
})

test('S6: repeatedly stopping the thread while it renews loses no lease', async () => {
  const locks = await open(newPath())
  const [renewed, lost] = [listen('heartbeat'), listen('lease_lost')]
  const leases: Lease[] = []
  for (let round = 0; round < 10; round += 1) {
    leases.push(await locks.acquire(`lease ${round}`))
    const extended = Promise.allSettled(leases.map(lease => lease.extend())) // so that it is at work
    await new Promise(resolve => setImmediate(resolve))
    await workers[round]?.terminate()
    await extended
  }
  const count = renewed.length
  await until('the main thread renews them all', () => renewed.length > count + 3 * leases.length)
  for (const lease of leases) lease.assertHeld()
  expect(lost).toEqual([])
}, 60_000)
