import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lost, refused, stage } from '../test/scripted-store.ts'
import { Heartbeat, type Renewable } from './heartbeat.ts'
import { VirtualClock } from './testing/clock.ts'

/** A lease that writes down when it is renewed; it succeeds as long as `well`. */
class Beaten implements Renewable {
  readonly ttl: number
  readonly at: number[] = []
  renewedAt: number
  well = true
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock, ttl: number) {
    this.#clock = clock
    this.ttl = ttl
    this.renewedAt = clock.now()
  }

  async renew(): Promise<boolean> {
    this.at.push(this.#clock.now())
    if (this.well) this.renewedAt = this.#clock.now()
    return this.well
  }
}

function setUp(random = 1): { clock: VirtualClock; heartbeat: Heartbeat } {
  const clock = new VirtualClock()
  return { clock, heartbeat: new Heartbeat(clock, () => random) }
}

test('a lease is renewed at every third of its ttl, the first time a little sooner by chance', async () => {
  for (const [random, first] of [
    [0, 2_250],
    [1, 3_000],
  ] as const) {
    const { clock, heartbeat } = setUp(random)
    const lease = new Beaten(clock, 9_000)
    heartbeat.join(lease)
    await clock.advance(10_000)
    expect(lease.at).toEqual([first, first + 3_000, first + 6_000])
    heartbeat.leave(lease)
    expect(clock.pending).toBe(0)
  }
})

test('leases of one ttl are renewed in one turn by one timer, those of another apart', async () => {
  const { clock, heartbeat } = setUp()
  const leases = [0, 1, 2].map(() => new Beaten(clock, 9_000))
  const other = new Beaten(clock, 12_000)
  heartbeat.join(other)
  for (const lease of leases) {
    heartbeat.join(lease)
    await clock.advance(100)
  }
  expect(clock.pending).toBe(2)
  await clock.advance(3_000)
  expect(leases.map(lease => lease.at)).toEqual([[3_000], [3_000], [3_000]])
  expect(other.at).toEqual([])
  await clock.advance(1_000)
  expect(other.at).toEqual([4_000])
})

test('a lease that is younger than half a beat waits for the next, and costs nothing if it ends before', async () => {
  const { clock, heartbeat } = setUp()
  const old = new Beaten(clock, 9_000)
  heartbeat.join(old)
  await clock.advance(1_600)
  const young = new Beaten(clock, 9_000)
  const brief = new Beaten(clock, 9_000)
  heartbeat.join(young)
  heartbeat.join(brief)
  await clock.advance(2_000)
  heartbeat.leave(brief)
  await clock.advance(3_000)
  expect([old.at, young.at, brief.at]).toEqual([[3_000, 6_000], [6_000], []])
})

test.each([
  [9_000, 450],
  [60_000, 500],
  [60, 10],
])('a renewal that failed is tried again: of %d ms, after %d', async (ttl, retry) => {
  const { clock, heartbeat } = setUp(0.5)
  const lease = new Beaten(clock, ttl)
  const first = (ttl / 3) * 0.875
  lease.well = false
  heartbeat.join(lease)
  await clock.advance(first + 2 * retry)
  expect(lease.at).toEqual([first, first + retry, first + 2 * retry])
  lease.well = true
  await clock.advance(retry)
  await clock.advance(ttl / 3 - 1)
  expect(lease.at).toHaveLength(4)
  await clock.advance(1)
  expect(lease.at).toHaveLength(5)
})

test('leases that fail together are tried again together', async () => {
  const { clock, heartbeat } = setUp(0.5)
  const leases = Array.from({ length: 100 }, () => new Beaten(clock, 9_000))
  for (const lease of leases) {
    lease.well = false
    heartbeat.join(lease)
  }
  await clock.advance(2_625 + 450)
  expect(clock.pending).toBe(1)
  for (const lease of leases) expect(lease.at).toEqual([2_625, 3_075])
})

test('a retry does not renew those that are well', async () => {
  const { clock, heartbeat } = setUp(0.5)
  const [well, ill] = [new Beaten(clock, 9_000), new Beaten(clock, 9_000)]
  ill.well = false
  heartbeat.join(well)
  heartbeat.join(ill)
  await clock.advance(2_625 + 450)
  expect([well.at.length, ill.at.length]).toEqual([1, 2])
})

test('a lease that leaves while its renewal is under way sets no timer when that fails', async () => {
  const { clock, heartbeat } = setUp()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const lease: Renewable = { ttl: 9_000, renewedAt: 0, renew: () => promise }
  heartbeat.join(lease)
  await clock.advance(3_000)
  heartbeat.leave(lease)
  resolve(false)
  await clock.advance(0)
  expect(clock.pending).toBe(0)
})

test('leaving twice, or without having joined, does nothing', async () => {
  const { clock, heartbeat } = setUp()
  const [one, two] = [new Beaten(clock, 9_000), new Beaten(clock, 9_000)]
  heartbeat.join(one)
  heartbeat.leave(two)
  await clock.advance(3_000)
  heartbeat.leave(one)
  heartbeat.leave(one)
  expect(one.at).toEqual([3_000])
  expect(clock.pending).toBe(0)
})

test('whatever joins, leaves and fails when, no lease gets older than half its ttl while renewals succeed', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 4_000 }) }) },
    { weight: 2, arbitrary: fc.record({ join: fc.constantFrom(900, 9_000, 30_000) }) },
    { weight: 1, arbitrary: fc.record({ leave: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ fail: fc.nat(9) }) },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (steps, random) => {
        const { clock, heartbeat } = setUp(random)
        let leases: Beaten[] = []
        for (const each of steps) {
          if ('join' in each) {
            const lease = new Beaten(clock, each.join)
            heartbeat.join(lease)
            leases.push(lease)
          } else if ('wait' in each) {
            await clock.advance(each.wait)
            for (const lease of leases)
              if (lease.well) expect(clock.now() - lease.renewedAt).toBeLessThanOrEqual(lease.ttl / 2)
          } else if ('leave' in each) {
            const lease = leases[each.leave]
            if (lease) heartbeat.leave(lease)
            leases = leases.filter(other => other !== lease)
          } else {
            const lease = leases[each.fail]
            if (lease) lease.well = false
          }
          expect(clock.pending).toBe(new Set(leases.map(lease => lease.ttl)).size)
        }
      },
    ),
    { numRuns: 40 },
  )
})

test('a renewal that is never answered is asked again in time', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', lost)
  await clock.advance(2_625)
  store.mend('renew')
  await clock.advance(3_000 + 449)
  expect(store.count('renew')).toBe(1)
  await clock.advance(9_000)
  expect(lease.remaining).toBeGreaterThan(4_500)
})

test('a failing store is asked for many leases at most some twenty times each before they end', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  for (let i = 0; i < 50; i += 1) await locks.acquire(`a${i}`)
  store.rule('renew', refused)
  await clock.advance(9_000)
  expect(store.count('renew') / 50).toBeGreaterThan(10)
  expect(store.count('renew') / 50).toBeLessThan(20)
  expect(clock.pending).toBe(0)
})

test('a lease that was just extended is not renewed at the next beat', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  await clock.advance(2_000)
  await lease.extend()
  await clock.advance(1_000) // the beat comes at 2,625
  expect(store.count('renew')).toBe(1)
  await clock.advance(2_700)
  expect(store.count('renew')).toBe(2)
})

test('a store that takes long to answer is asked as often as one that does not', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', async forward => {
    await new Promise<void>(resolve => clock.after(2_900, resolve))
    return forward()
  })
  await clock.advance(2_625 + 10 * 3_000)
  expect(store.count('renew')).toBe(11)
  lease.assertHeld()
})
