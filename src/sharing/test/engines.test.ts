import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import type { Lease, Permit } from '../../contract/lease.ts'
import { LARGEST_LIMIT } from '../../contract/store.ts'
import { enginesWith } from '../../core/test/engines.ts'
import { connect, createLocks, type Locks } from '../../index.ts'
import { openStore } from '../../store.ts'

const LIMIT = 3
const TTL = 5_000

const engines = enginesWith(`maxTtl=${TTL}`) // its quarantine is short

/** The permits that are held now, by name. */
class Held {
  readonly limit: number
  most = 0
  done = 0
  readonly #slots = new Set<number>()

  constructor(limit: number) {
    this.limit = limit
  }

  async during(permit: Lease | Permit, ms: number): Promise<void> {
    for (const slot of 'slots' in permit ? permit.slots : [0]) {
      if (this.#slots.has(slot) || slot >= this.limit) throw new Error(`slot ${slot} has two holders, or is too high`)
      this.#slots.add(slot)
    }
    this.most = Math.max(this.most, this.#slots.size)
    await sleep(ms)
    permit.assertHeld()
    for (const slot of 'slots' in permit ? permit.slots : [0]) this.#slots.delete(slot)
    this.done += 1
  }
}

async function names(locks: Locks): Promise<string[]> {
  return (await Array.fromAsync(locks.list())).map(({ name }) => name)
}

/** 60 permits, 500 readers, and a writer that waits for all of them. */
async function holdMany(one: Locks, other: Locks): Promise<void> {
  const both = [one, other] as const
  const permits = await Promise.all(
    Array.from({ length: 60 }, (_, index) => both[index % 2 ? 1 : 0].semaphore('many', { limit: 60 }).acquire()),
  )
  expect(new Set(permits.map(({ slot }) => slot)).size).toBe(60)
  expect(await one.semaphore('many', { limit: 60 }).tryAcquire()).toBeUndefined()
  const readers = await Promise.all(
    Array.from({ length: 500 }, (_, index) => both[index % 2 ? 1 : 0].readWrite('crowd').reader.acquire()),
  )
  expect((await other.inspect('crowd')).holders).toHaveLength(500)
  const writing = one.readWrite('crowd').writer.acquire()
  writing.catch(() => {}) // it is awaited below, unless this fails before
  await until('the writer waits', async () => (await other.inspect('crowd')).waiters.length === 1)
  expect(await other.readWrite('crowd').reader.tryAcquire()).toBeUndefined()
  for (const lease of [...permits, ...readers]) lease.assertHeld()
  expect(new Set(await Promise.all([...permits, ...readers].map(lease => lease.release())))).toEqual(
    new Set(['released']),
  )
  expect(await (await writing).release()).toBe('released')
}

test.concurrent.for(Object.entries(engines))(
  'over %s never more than the limit, no reader beside a writer, and the slots of the dead are freed',
  { timeout: 120_000 },
  async ([, start], context) => {
    const url = await start(context)
    await using one = await connect(url, { ttl: TTL })
    await using other = await connect(url, { ttl: TTL })
    const isOrdered = one.store.guarantees.order === 'first come, first served'
    const permits = new Held(LIMIT)
    const pages = new Held(LARGEST_LIMIT)
    let writers = 0
    const tasks = Array.from({ length: 50 }, async (_, index) => {
      const locks = index % 2 === 0 ? one : other
      await sleep(randomInt(500))
      const weight = isOrdered && index % 5 === 0 ? 2 : 1
      const semaphore = locks.semaphore('permits', { limit: LIMIT })
      await semaphore.using({ permits: weight }, permit => permits.during(permit, randomInt(20)))
      if (index % 5 !== 0 || !isOrdered) return
      const { reader, writer } = locks.readWrite('pages')
      const isWriter = index % 20 === 0
      await (isWriter ? writer : reader).using(async permit => {
        writers += isWriter ? 1 : 0
        expect(writers).toBeLessThanOrEqual(isWriter ? 1 : 0)
        await pages.during(permit, randomInt(20))
        writers -= isWriter ? 1 : 0
      })
    })
    await Promise.all(tasks)
    expect(permits.done).toBe(50)
    expect([2, LIMIT]).toContain(permits.most) // calls enter one after the other, on a slow machine as slowly as they leave
    if (isOrdered) expect(pages.done).toBe(10)
    const isLeft = async (): Promise<boolean> => (await names(one)).length > 0
    await until('nothing is left', async () => !(await isLeft())) // withdrawals in the background

    if (one.store.guarantees.sharing === 'slots') await holdMany(one, other)
    await until('nothing is left', async () => !(await isLeft()))

    // A process that dies: its store ends, and nothing is released.
    const store = await openStore(url)
    const dying = createLocks(store, { ttl: TTL })
    const count = isOrdered ? 1 : LIMIT
    const all = { permits: LIMIT / count }
    const acquireAll = (locks: Locks): Promise<Permit[]> => {
      const semaphore = locks.semaphore('permits', { limit: LIMIT })
      return Promise.all(Array.from({ length: count }, () => semaphore.acquire({ ...all, wait: 60_000 })))
    }
    const slotsOf = (held: readonly Permit[]): number[] => held.flatMap(({ slots }) => slots).sort((a, b) => a - b)
    const dead = await acquireAll(dying)
    expect(slotsOf(dead)).toEqual([0, 1, 2])
    expect(await one.semaphore('permits', { limit: LIMIT }).tryAcquire()).toBeUndefined()
    await store[Symbol.asyncDispose]()
    const began = performance.now()
    const next = await acquireAll(one)
    expect(performance.now() - began).toBeLessThan(3 * TTL)
    expect(slotsOf(next)).toEqual([0, 1, 2])
    for (const permit of next) {
      expect(permit.token).toBeGreaterThan(dead.find(({ slot }) => slot === permit.slot)?.token ?? 0n)
      expect(await permit.release()).toBe('released')
    }
    await until('nothing is left', async () => !(await isLeft()))
  },
)
