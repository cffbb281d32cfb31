import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import cron from 'node-cron'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { createLocks, type Locks } from '../../create-locks.ts'
import { sqlite } from '../../stores/sqlite/index.ts'
import { runCoordinator } from './index.ts'

const KEEP = 60_000
const [at3, at4] = ['2026-01-31T03:00:00.000Z', '2026-01-31T04:00:00.000Z']
const [first, second] = [`invoices:${at3}`, `invoices:${at4}`]
const context = (date: string): { date: Date; task: { name: string } } => ({
  date: new Date(date),
  task: { name: 'invoices' },
})

let folder: string
let a: Locks
let b: Locks

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-node-cron-'))
  const replica = (owner: string): Locks => createLocks(sqlite(join(folder, 'leases.db')), { owner, ttl: 2_000 })
  a = replica('a')
  b = replica('b')
})

afterEach(async () => {
  await Promise.all([a.close(), b.close()])
  rmSync(folder, { recursive: true, force: true })
})

test('one replica runs a scheduled time, also if another asks after the run', async () => {
  const [one, other] = [runCoordinator(a), runCoordinator(b)]
  expect(await one.shouldRun(first, KEEP)).toBe(true)
  expect(await other.shouldRun(first, KEEP)).toBe(false)
  await one.onComplete(first)
  expect(await other.shouldRun(first, KEEP)).toBe(false)
  expect(await other.shouldRun(second, KEEP)).toBe(true)
  await other.onComplete(second)
})

test('a scheduled time is skipped while the run before goes on', async () => {
  const [one, other] = [runCoordinator(a), runCoordinator(b)]
  expect(await one.shouldRun(first, KEEP)).toBe(true)
  expect(await other.shouldRun(second, KEEP)).toBe(false)
  await one.onComplete(first)
  expect((await b.inspect('invoices')).holders[0]).toBeUndefined()
})

test('runs may overlap if they are allowed to, and then have no lease', async () => {
  const [one, other] = [runCoordinator(a, { overlap: true }), runCoordinator(b, { overlap: true })]
  expect(await one.shouldRun(first, KEEP)).toBe(true)
  expect(await other.shouldRun(first, KEEP)).toBe(false)
  expect(await other.shouldRun(second, KEEP)).toBe(true)
  expect(one.leaseOf(context(at3))).toBeUndefined()
  expect((await a.inspect('invoices')).holders[0]).toBeUndefined()
  await one.onComplete(first)
})

test('a run has its lease until it ends, and is notified of its loss', async () => {
  const one = runCoordinator(a)
  await one.shouldRun(first, KEEP)
  const lease = one.leaseOf(context(at3))
  if (!lease) throw new Error('the run has no lease')
  expect((await b.inspect('invoices')).holders[0]).toMatchObject({ owner: 'a', token: lease.token })
  expect(one.leaseOf(context(at4))).toBeUndefined()
  const lost = once(lease.signal, 'abort')
  await b.break('invoices')
  await lost
  await one.onComplete(first)
  expect(one.leaseOf(context(at3))).toBeUndefined()
})

test('a replica that cannot acquire the lease leaves the scheduled time to others', async () => {
  const stopped = { store: a.store, tryAcquire: (name: string) => a.tryAcquire(name, { signal: AbortSignal.abort() }) }
  await expect(runCoordinator(stopped).shouldRun(first, KEEP)).rejects.toMatchObject({ name: 'AbortError' })
  const other = runCoordinator(b)
  expect(await other.shouldRun(first, KEEP)).toBe(true)
  await other.onComplete(first)
})

test('it rejects after close, and for a task without a name', async () => {
  const one = runCoordinator(a)
  await expect(one.shouldRun(`:${at3}`, KEEP)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(one.shouldRun(first, 0)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await a.close()
  // Not even a mark that is withdrawn again: another replica could find it meanwhile.
  const acquire = vi.spyOn(a.store, 'acquire')
  await expect(one.shouldRun(first, KEEP)).rejects.toMatchObject({ code: 'CLOSED' })
  expect(acquire).not.toHaveBeenCalled()
})

test('a store that keeps no mark for so long is refused', async () => {
  for (const [longestUnattended, says] of [
    [0, 'use another store'],
    [KEEP - 1, `for at most ${KEEP - 1} ms`],
  ] as const) {
    const guarantees = { ...a.store.guarantees, longestUnattended }
    const store = Object.create(a.store, { guarantees: { value: guarantees } })
    const one = runCoordinator({ store, tryAcquire: () => Promise.reject(new Error('it was marked')) })
    await expect(one.shouldRun(first, KEEP)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(says),
    })
  }
})

test('it refuses arguments that are no locks, and unknown options', () => {
  expect(() => runCoordinator({} as Locks)).toThrow('needs locks')
  expect(() => runCoordinator(a, { overlaps: true } as object)).toThrow('no option')
})

test('node-cron runs each scheduled time on one of two replicas, under a lease', async () => {
  const runs: { date: string; token: bigint | undefined }[] = []
  const skipped: (string | undefined)[] = []
  const tasks = [a, b].map(locks => {
    const coordinator = runCoordinator(locks)
    const task = cron.schedule(
      '* * * * * *',
      context => void runs.push({ date: context.date.toISOString(), token: coordinator.leaseOf(context)?.token }),
      { name: 'tick', distributed: true, runCoordinator: coordinator, distributedLease: KEEP },
    )
    task.on('execution:skipped', ({ reason }) => void skipped.push(reason))
    return task
  })
  try {
    await until('two runs, and two skipped', () => runs.length >= 2 && skipped.length >= 2)
  } finally {
    for (const task of tasks) await task.destroy()
  }
  expect(new Set(runs.map(({ date }) => date)).size).toBe(runs.length)
  expect(runs.every(({ token }) => typeof token === 'bigint')).toBe(true)
  expect(new Set(skipped)).toEqual(new Set(['not-elected']))
})
