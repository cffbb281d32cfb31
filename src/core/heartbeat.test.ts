import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lost, refused, stage } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { Entry } from '../contract/list.ts'
import { VirtualClock } from '../testing/clock.ts'
import { Heartbeat, type Renewable } from './heartbeat.ts'

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

  async renew(): Promise<LeaseError | undefined> {
    this.at.push(this.#clock.now())
    if (!this.well) return new LeaseError('OUTCOME_UNKNOWN', 'no answer')
    this.renewedAt = this.#clock.now()
    return undefined
  }
}

function setUp(random = 1): { clock: VirtualClock; heartbeat: Heartbeat } {
  const clock = new VirtualClock()
  return { clock, heartbeat: new Heartbeat(clock, () => random) }
}

test('a lease is renewed at every third of its ttl, the first time a random bit sooner', async () => {
  for (const [random, first] of [
    [0, 2_250],
    [1, 3_000],
  ] as const) {
    const { clock, heartbeat } = setUp(random)
    const lease = new Beaten(clock, 9_000)
    const entry = heartbeat.join(lease)
    await clock.advance(10_000)
    expect(lease.at).toEqual([first, first + 3_000, first + 6_000])
    heartbeat.leave(entry)
    expect(clock.pending).toBe(0)
  }
})

test('leases of one ttl are renewed in one turn by one timer, those of another separately', async () => {
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

test('a lease younger than half an interval waits for the next heartbeat, and costs nothing if it ends before', async () => {
  const { clock, heartbeat } = setUp()
  const old = new Beaten(clock, 9_000)
  heartbeat.join(old)
  await clock.advance(1_600)
  const young = new Beaten(clock, 9_000)
  const brief = new Beaten(clock, 9_000)
  heartbeat.join(young)
  const entry = heartbeat.join(brief)
  await clock.advance(2_000)
  heartbeat.leave(entry)
  await clock.advance(3_000)
  expect([old.at, young.at, brief.at]).toEqual([[3_000, 6_000], [6_000], []])
})

test.each([
  [9_000, 450],
  [60_000, 500],
  [60, 3],
])('a renewal that failed is tried again: of %d ms, after %d', async (ttl, retry) => {
  const { clock, heartbeat } = setUp(0.5)
  const lease = new Beaten(clock, ttl)
  const first = (ttl / 3) * 0.875
  lease.well = false
  heartbeat.join(lease)
  await clock.advance(first + 2 * retry)
  expect(lease.at).toHaveLength(3)
  lease.well = true
  await clock.advance(ttl / 3)
  expect(lease.at).toEqual([0, retry, 2 * retry, 3 * retry, ttl / 3].map(after => first + after))
  expect(clock.pending).toBe(1)
})

test('thousands of renewals that fail together are retried together, and stay together', async () => {
  const { clock, heartbeat } = setUp(0.5)
  const leases = Array.from({ length: 5_000 }, () => new Beaten(clock, 9_000))
  for (const lease of leases) {
    lease.well = false
    heartbeat.join(lease)
  }
  await clock.advance(2_625 + 450)
  expect(clock.pending).toBe(2) // the next beat, and the next try
  for (const lease of leases) lease.well = true
  await clock.advance(3_000)
  expect(clock.pending).toBe(1)
  for (const lease of leases) expect(lease.at).toEqual([2_625, 3_075, 3_525, 5_625])
})

test('renewals that fail alone do not delay the others', async () => {
  const { clock, heartbeat } = setUp(0.5)
  const [well, ill] = [new Beaten(clock, 9_000), new Beaten(clock, 9_000)]
  heartbeat.join(well)
  heartbeat.join(ill)
  ill.well = false
  await clock.advance(2_625 + 4 * 3_000)
  expect(well.at).toEqual([0, 1, 2, 3, 4].map(beat => 2_625 + beat * 3_000))
  expect(ill.at).toHaveLength(1 + Math.floor(12_000 / 450))
})

test('a retry renews only leases whose renewal failed', async () => {
  const { clock, heartbeat } = setUp(0.5)
  const [well, ill] = [new Beaten(clock, 9_000), new Beaten(clock, 9_000)]
  ill.well = false
  heartbeat.join(well)
  heartbeat.join(ill)
  await clock.advance(2_625 + 450)
  expect([well.at.length, ill.at.length]).toEqual([1, 2])
})

test('a lease that leaves during its renewal sets no timer when that fails', async () => {
  const { clock, heartbeat } = setUp()
  const { promise, resolve } = Promise.withResolvers<LeaseError>()
  const lease: Renewable = { ttl: 9_000, renewedAt: 0, renew: () => promise }
  const entry = heartbeat.join(lease)
  await clock.advance(3_000)
  heartbeat.leave(entry)
  resolve(new LeaseError('OUTCOME_UNKNOWN', 'no answer'))
  await clock.advance(0)
  expect(clock.pending).toBe(0)
})

test('leaving twice does nothing', async () => {
  const { clock, heartbeat } = setUp()
  const one = new Beaten(clock, 9_000)
  const entry = heartbeat.join(one)
  await clock.advance(3_000)
  heartbeat.leave(entry)
  heartbeat.leave(entry)
  expect(one.at).toEqual([3_000])
  expect(clock.pending).toBe(0)
})

test('in any order of joins, leaves and failures, no lease gets older than half its ttl while renewals succeed', async () => {
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
        const entries = new Map<Beaten, Entry<Renewable>>()
        for (const each of steps) {
          if ('join' in each) {
            const lease = new Beaten(clock, each.join)
            entries.set(lease, heartbeat.join(lease))
            leases.push(lease)
          } else if ('wait' in each) {
            await clock.advance(each.wait)
            for (const lease of leases)
              if (lease.well) expect(clock.now() - lease.renewedAt).toBeLessThanOrEqual(lease.ttl / 2)
          } else if ('leave' in each) {
            const lease = leases[each.leave]
            const entry = lease && entries.get(lease)
            if (entry) heartbeat.leave(entry)
            leases = leases.filter(other => other !== lease)
          } else {
            const lease = leases[each.fail]
            if (lease) lease.well = false
          }
          const groups = new Set(leases.map(lease => lease.ttl)).size
          const failing = new Set(leases.filter(lease => !lease.well).map(lease => lease.ttl)).size
          expect(clock.pending).toBeGreaterThanOrEqual(groups)
          expect(clock.pending).toBeLessThanOrEqual(groups + failing)
        }
      },
    ),
    { numRuns: 40 },
  )
})

test('an unanswered renewal is retried after 15 % of the ttl, until one is answered', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', lost)
  await clock.advance(2_625 + 1_349)
  expect(store.count('renew')).toBe(1)
  await clock.advance(1)
  expect(store.count('renew')).toBe(2)
  store.restore('renew')
  await clock.advance(1_350)
  expect(store.count('renew')).toBe(3)
  expect(lease.remaining).toBe(9_000 - 92)
  await clock.advance(60_000)
  lease.assertHeld()
})

test('a lease whose renewals are all lost ends at its deadline, after four attempts or more', async () => {
  for (const ttl of [100, 1_000, 10_000, 100_000]) {
    const { locks, clock, store } = stage({ ttl })
    const { signal } = await locks.acquire('a')
    store.rule('renew', lost)
    const deadline = ttl * 0.99 - 2
    await clock.advance(deadline - 0.001)
    expect(signal.aborted).toBe(false)
    await clock.advance(0.001)
    expect(signal.aborted).toBe(true)
    expect(store.count('renew')).toBeGreaterThanOrEqual(4)
    expect(store.count('renew')).toBeLessThanOrEqual(ttl > 10_000 ? 60 : 8)
    await clock.advance(ttl)
    expect(clock.pending).toBe(0)
  }
})

test('thousands of leases are renewed together when an unresponsive store answers again', async () => {
  const { locks, clock, store } = stage()
  const leases: Lease[] = []
  for (let i = 0; i < 2_000; i += 1) leases.push(await locks.acquire(`${i}`))
  store.rule('renew', lost)
  // The beat is at 2,917, for 256, then 512 and so on, a step of 250 ms apart; the second try for each is 1,500 later.
  await clock.advance(5_000)
  expect(store.count('renew')).toBe(2_000 + 256 + 512 + 1_024)
  store.restore('renew')
  await clock.advance(1_000) // the other second tries, and the first of the third
  expect(store.count('renew')).toBe(4_000 + 256)
  await clock.advance(2_000) // the next beat is at 6,250: the leases are too young
  expect(store.count('renew')).toBe(4_000 + 256 + 512 + 1_024)
  await clock.advance(2_000)
  expect(store.count('renew')).toBe(6_000 + 256 + 512 + 1_024)
  for (const lease of leases) lease.assertHeld()
})

test('of a thousand leases 256 are renewed at once, and the others as these are answered', async () => {
  const { locks, clock, store } = stage()
  for (let i = 0; i < 1_000; i += 1) await locks.acquire(`${i}`)
  const answer = store.holdReplies('renew')
  await clock.advance(2_920)
  expect(store.count('renew')).toBe(256)
  answer()
  await clock.advance(0)
  expect(store.count('renew')).toBe(1_000)
})

test('renewals whose answers wait behind a blocked event loop are not repeated', async () => {
  const { locks, clock, store } = stage()
  const leases: Lease[] = []
  for (let i = 0; i < 100; i += 1) leases.push(await locks.acquire(`${i}`))
  const answer = store.holdReplies('renew')
  await clock.advance(2_920)
  await clock.block(1_500)
  await clock.advance(500)
  answer()
  await clock.advance(0)
  expect(store.count('renew')).toBe(100)
  await clock.advance(1_000)
  expect(store.count('renew')).toBe(100)
  for (const lease of leases) lease.assertHeld()
})

test('a failing store gets at most about twenty requests for each of many leases before they end', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  for (let i = 0; i < 50; i += 1) await locks.acquire(`a${i}`)
  store.rule('renew', refused)
  await clock.advance(9_000)
  expect(store.count('renew') / 50).toBeGreaterThan(10)
  expect(store.count('renew') / 50).toBeLessThan(20)
  expect(clock.pending).toBe(0)
})

test('a lease that was just extended is not renewed at the next heartbeat', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  await clock.advance(2_000)
  await lease.extend()
  await clock.advance(1_000) // the beat comes at 2,625
  expect(store.count('renew')).toBe(1)
  await clock.advance(2_700)
  expect(store.count('renew')).toBe(2)
})
