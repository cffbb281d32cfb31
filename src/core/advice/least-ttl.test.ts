import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Random } from '../../../test/simulation/random.ts'
import { StoreLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { leastTtl, tolerance } from './least-ttl.ts'

const nothing = { p99: 0, unresponsiveness: 0, loopDelay: 0, minTtl: 0 }

test.each([
  [1_000, 300.5],
  [10_000, 3_023],
  [30_000, 12_823],
])('a ttl of %d ms tolerates %d ms in addition to a lost heartbeat', (ttl, tolerated) => {
  expect(tolerance(ttl)).toBeCloseTo(tolerated)
})

test('the least ttl is the first that tolerates the measurements, in whole milliseconds', () => {
  const ms = fc.double({ min: 0, max: 100_000, noNaN: true })
  fc.assert(
    fc.property(ms, ms, (unresponsiveness, loopDelay) => {
      const { ttl } = leastTtl({ ...nothing, unresponsiveness, loopDelay })
      expect(Number.isInteger(ttl)).toBe(true)
      expect(tolerance(ttl)).toBeGreaterThanOrEqual(unresponsiveness + loopDelay)
      expect(tolerance(ttl - 1)).toBeLessThan(unresponsiveness + loopDelay)
    }),
  )
})

test('the largest requirement decides, and is the reason', () => {
  expect(leastTtl({ p99: 48, unresponsiveness: 60, loopDelay: 510, minTtl: 100 })).toEqual({
    ttl: 1_891,
    reason:
      'p99 48 ms, unresponsive 60 ms, worst loop delay 510 ms: ttl >= 1891 ms, to tolerate these and one lost heartbeat',
  })
  expect(leastTtl({ p99: 48, unresponsiveness: 60, loopDelay: 1, minTtl: 100 })).toEqual({
    ttl: 480,
    reason: 'p99 48 ms, unresponsive 60 ms, worst loop delay 1 ms: ttl >= 480 ms, which is 10 times the p99',
  })
  expect(leastTtl({ p99: 0.123, unresponsiveness: 2, loopDelay: 1, minTtl: 100 })).toEqual({
    ttl: 100,
    reason: 'p99 0.12 ms, unresponsive 2 ms, worst loop delay 1 ms: ttl >= 100 ms, the shortest ttl of this store',
  })
})

/** What happens to a lease. Milliseconds, and times since the grant. */
interface Trial {
  readonly ttl: number
  /** Latency of each renewal. */
  readonly latency: () => number
  /** Which renewal is lost. */
  readonly lost: number
  /** How long the event loop is blocked, once, and when. */
  readonly block: number
  readonly blockAt: number
  /** How long before it another lease of the same ttl was granted, which shares its heartbeat. */
  readonly after: number
  readonly random: () => number
}

/** Is the lease still held afterwards? */
async function survives({ ttl, latency, lost, block, blockAt, after, random }: Trial): Promise<boolean> {
  const clock = new VirtualClock()
  const store = memory({ clock })
  const renew = store.renew.bind(store)
  let renewals = 0
  store.renew = async (claim, signal) => {
    if (claim.name === 'a' && ++renewals === lost) return new Promise<never>(() => {})
    const grant = await renew(claim, signal)
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(latency(), resolve)
    await promise
    return grant
  }
  const locks = new StoreLocks(store, { ttl }, { clock, random })
  await locks.acquire('other')
  await clock.advance(after)
  const lease = await locks.acquire('a')
  await clock.advance(blockAt)
  await clock.block(block)
  await clock.advance(2 * ttl)
  expect(renewals).toBeGreaterThan(lost)
  return !lease.signal.aborted
}

describe('a lease of the least ttl', () => {
  const measured = { p99: 10, unresponsiveness: 60, loopDelay: 210, minTtl: 10 }
  const { ttl } = leastTtl(measured)
  // Just too young for the first beat. The loop is blocked when the second is due, and its request is lost. The steps to the
  // next try have the longest random length, and its answer takes as long as the longest measured.
  const worst = (of: number): Trial => ({
    ttl: of,
    latency: () => measured.unresponsiveness,
    lost: 1,
    block: measured.loopDelay,
    blockAt: of / 2 - 2,
    after: of / 6 + 1,
    random: () => 1,
  })

  test('tolerates a lost heartbeat at the worst time, the worst latency and the worst delay at once', async () => {
    expect(await survives(worst(ttl))).toBe(true)
    expect(await survives(worst(ttl + 5_000))).toBe(true)
  })

  test('is lost if its ttl is 5 % shorter', async () => {
    expect(await survives(worst(Math.floor(ttl * 0.95)))).toBe(false)
  })

  test('tolerates them at any time, with any random steps', async () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = new Random(seed)
      const [unresponsiveness, loopDelay] = [random.between(0, 2_000), random.between(0, 3_000)]
      const { ttl } = leastTtl({ p99: 0, unresponsiveness, loopDelay, minTtl: 50 })
      const trial: Trial = {
        ttl,
        latency: () => random.between(0, unresponsiveness),
        lost: random.integer(1, 3),
        block: loopDelay,
        blockAt: random.between(0, 1.5 * ttl),
        after: random.between(0, ttl / 2),
        random: random.next,
      }
      expect(await survives(trial), `seed ${seed}`).toBe(true)
    }
  })
})
