import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Random } from '../../../test/simulation/random.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { StoreLocks } from '../locks.ts'
import { leastTtl, spareOf } from './least-ttl.ts'

const nothing = { p99: 0, silence: 0, loopDelay: 0, shortestTtl: 0 }

test.each([
  [1_000, 300.5],
  [10_000, 3_023],
  [30_000, 12_823],
])('a ttl of %d ms spares %d ms beside a lost heartbeat', (ttl, spare) => {
  expect(spareOf(ttl)).toBeCloseTo(spare)
})

test('the least ttl is the first that spares what was measured, in whole milliseconds', () => {
  const ms = fc.double({ min: 0, max: 100_000, noNaN: true })
  fc.assert(
    fc.property(ms, ms, (silence, loopDelay) => {
      const { ttl } = leastTtl({ ...nothing, silence, loopDelay })
      expect(Number.isInteger(ttl)).toBe(true)
      expect(spareOf(ttl)).toBeGreaterThanOrEqual(silence + loopDelay)
      expect(spareOf(ttl - 1)).toBeLessThan(silence + loopDelay)
    }),
  )
})

test('whichever needs the most decides, and is the reason', () => {
  expect(leastTtl({ p99: 48, silence: 60, loopDelay: 510, shortestTtl: 100 })).toEqual({
    ttl: 1_891,
    reason:
      'p99 48 ms, longest silence 60 ms, worst loop delay 510 ms: ttl >= 1891 ms, to live through these and one lost heartbeat',
  })
  expect(leastTtl({ p99: 48, silence: 60, loopDelay: 1, shortestTtl: 100 })).toEqual({
    ttl: 480,
    reason: 'p99 48 ms, longest silence 60 ms, worst loop delay 1 ms: ttl >= 480 ms, which is 10 times the p99',
  })
  expect(leastTtl({ p99: 0.123, silence: 2, loopDelay: 1, shortestTtl: 100 })).toEqual({
    ttl: 100,
    reason:
      'p99 0.12 ms, longest silence 2 ms, worst loop delay 1 ms: ttl >= 100 ms, the shortest that is sensible over this store',
  })
})

/** What a lease meets. Milliseconds, and moments after it was granted. */
interface Trial {
  readonly ttl: number
  /** Of each renewal. */
  readonly latency: () => number
  /** Which of its renewals is lost on the way. */
  readonly lost: number
  /** For how long the event loop is blocked, once, and when. */
  readonly block: number
  readonly blockAt: number
  /** How long before it another lease of its ttl was granted, with which it beats. */
  readonly after: number
  readonly random: () => number
}

/** Is the lease held after all that? */
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
  const measured = { p99: 10, silence: 60, loopDelay: 210, shortestTtl: 10 }
  const { ttl } = leastTtl(measured)
  // Just too young for the first beat; the loop is blocked when the second is due, whose request is lost; the steps until
  // the next try are the longest that chance allows; and its answer takes the longest that was measured.
  const worst = (of: number): Trial => ({
    ttl: of,
    latency: () => measured.silence,
    lost: 1,
    block: measured.loopDelay,
    blockAt: of / 2 - 2,
    after: of / 6 + 1,
    random: () => 1,
  })

  test('lives through the worst moment for a lost heartbeat, the worst latency and the worst delay at once', async () => {
    expect(await survives(worst(ttl))).toBe(true)
    expect(await survives(worst(ttl + 5_000))).toBe(true)
  })

  test('is lost by them if its ttl is a twentieth shorter', async () => {
    expect(await survives(worst(Math.floor(ttl * 0.95)))).toBe(false)
  })

  test('lives through them at any moment, with any chance', async () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = new Random(seed)
      const [silence, loopDelay] = [random.between(0, 2_000), random.between(0, 3_000)]
      const { ttl } = leastTtl({ p99: 0, silence, loopDelay, shortestTtl: 50 })
      const trial: Trial = {
        ttl,
        latency: () => random.between(0, silence),
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
