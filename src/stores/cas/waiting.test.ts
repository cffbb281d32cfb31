import { expect, test } from 'vitest'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import type { Claim, Store } from '../../contract/store.ts'
import { gracePeriod } from '../../contract/time.ts'
import { pass, System } from './test/system.ts'

/** Waiters of one process for a name that is held, and how often each was woken. */
async function waiting(system: System, count: number): Promise<{ store: Store; holder: Claim; wakes: number[] }> {
  const store = system.start()
  const holder = claimOf('a', { ttl: 600_000 })
  await hold(system.start(), holder)
  const wakes: number[] = []
  for (let index = 0; index < count; index += 1) {
    const claim = claimOf('a', { queue: true })
    await store.acquire(claim, signal)
    wakes.push(0)
    await store.watch?.(claim, () => (wakes[index] = (wakes[index] ?? 0) + 1), signal)
  }
  await pass(system, 100)
  return { store, holder, wakes }
}

test('however many wait in a process, it reads at most twice a second, and keeps all positions', async () => {
  const system = new System()
  const { store, wakes } = await waiting(system, 50)
  const [reads, writes] = [system.reads, system.writes]
  await pass(system, 10_000)
  expect(system.reads - reads).toBeLessThanOrEqual(20)
  expect(system.writes - writes).toBeLessThanOrEqual(10)
  expect(Math.max(...wakes)).toBe(0)
  expect(await look(store, { name: 'a' })).toHaveLength(51)
})

test('a register that watches wakes the first waiter at a release, and is read rarely', async () => {
  const system = new System()
  const watched = new Set<() => void>()
  system.watch = async (_, changed, ended) => {
    watched.add(changed)
    ended.addEventListener('abort', () => watched.delete(changed))
  }
  const { holder, wakes } = await waiting(system, 3)
  const { reads } = system
  await pass(system, 6_000)
  expect(system.reads - reads).toBeLessThanOrEqual(5)
  expect(wakes).toEqual([0, 0, 0])
  await system.start().release(holder, signal)
  for (const changed of watched) changed()
  await pass(system, 20)
  expect(wakes).toEqual([1, 1, 0]) // the second is told to ask after the grace period of the first
})

test('positions are kept while a watch takes long to arm', async () => {
  const system = new System()
  system.watch = () => new Promise(() => {})
  const store = system.start()
  await hold(system.start(), claimOf('a', { ttl: 600_000 }))
  const claim = claimOf('a', { queue: true })
  await store.acquire(claim, signal)
  void store.watch?.(claim, () => {}, signal)
  await pass(system, 10_000)
  expect(await look(store, { name: 'a' })).toHaveLength(2)
})

test('positions are kept while a read hangs that a request of the same process waits for', async () => {
  const system = new System()
  const { store } = await waiting(system, 1)
  await pass(system, 1_400)
  const { read } = system
  system.read = () => {
    system.read = read
    return new Promise(() => {})
  }
  const asked = store.acquire(claimOf('a', { ttl: 60_000 }), signal)
  await pass(system, 4_500)
  expect(await look(system.start(), { name: 'a' })).toHaveLength(2)
  expect(await asked).toMatchObject({ held: false })
})

test('while a register cannot watch, the store polls', async () => {
  const system = new System()
  system.watch = () => Promise.reject(new Error('no connection'))
  const { holder, wakes } = await waiting(system, 1)
  await system.start().release(holder, signal)
  await pass(system, 600)
  expect(wakes[0]).toBeGreaterThan(0)
})

test('a release wakes the waiter of the same process at once', async () => {
  const system = new System()
  const { store, holder, wakes } = await waiting(system, 1)
  await store.release(holder, signal)
  expect(wakes).toEqual([1])
})

test('waiters are woken while the store cannot be read, so that they find out the reason', async () => {
  const system = new System()
  const { wakes } = await waiting(system, 2)
  system.read = () => Promise.reject(new Error('no connection'))
  await pass(system, 600)
  expect(Math.min(...wakes)).toBeGreaterThan(0)
})

test('the second waiter looks at least once in every grace period', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  await hold(one, claimOf('a', { ttl: 60_000 }))
  await one.acquire(claimOf('a', { queue: true, ttl: 60_000 }), signal)
  const second = claimOf('a', { queue: true, ttl: 60_000 })
  await two.acquire(second, signal)
  const looks: number[] = []
  const { read } = system
  system.read = key => {
    looks.push(system.clock.now())
    return read.call(system, key)
  }
  await two.watch?.(second, () => {}, signal)
  await pass(system, 4_000)
  const gaps = looks.slice(1).map((time, index) => time - (looks[index] as number))
  expect(gaps.length).toBeGreaterThan(2)
  expect(Math.max(...gaps)).toBeLessThan(gracePeriod(500))
})
