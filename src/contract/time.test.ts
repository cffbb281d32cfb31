import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { margin, requestLimit, roundTripOf, systemClock } from './time.ts'
import { LONGEST_DELAY } from './timers.ts'

test.each([
  [10, 10 / 3],
  [9_000, 3_000],
  [15_000, 5_000],
  [LONGEST_DELAY, 5_000],
])('a request of a claim with a ttl of %d ms is waited for %d ms', (ttl, limit) => {
  expect(requestLimit(ttl)).toBeCloseTo(limit)
})

test('a holder gives up 1 % and 2 ms of its ttl', () => {
  expect(margin(10_000)).toBe(102)
  expect(margin(10)).toBeCloseTo(2.1)
})

describe('elapsed time', () => {
  let monotonic = 0
  let wall = 0
  const pass = (onMonotonic: number, onWall = onMonotonic): void => {
    monotonic += onMonotonic
    wall += onWall
  }

  beforeEach(() => {
    monotonic = 1_000.25
    wall = 0.6 // since some midnight: so small that its sums are exact
    vi.spyOn(performance, 'now').mockImplementation(() => monotonic)
    vi.spyOn(Date, 'now').mockImplementation(() => Date.UTC(2026, 0, 1) + Math.floor(wall))
  })
  afterEach(() => void vi.restoreAllMocks())

  /** Milliseconds that the clock says have passed during `happening`. */
  function elapsed(happening: (now: () => number) => void): number {
    const clock = systemClock()
    const before = clock.now()
    happening(() => clock.now())
    return clock.now() - before
  }

  test('follows the monotonic clock while both clocks agree', () => {
    expect(elapsed(() => pass(5_000.5))).toBe(5_000.5)
  })

  test('counts the sleep of a suspended machine, during which the monotonic clock stops', () => {
    expect(elapsed(() => pass(3, 3_600_003))).toBeGreaterThanOrEqual(3_600_002)
  })

  test('counts a forward step of the wall clock, once', () => {
    const passed = elapsed(now => {
      pass(10, 60_010)
      now()
      pass(10)
      now()
      pass(10)
    })
    expect(passed).toBeGreaterThanOrEqual(60_030 - 1)
    expect(passed).toBeLessThanOrEqual(60_030 + 1)
  })

  test('is the same for all clocks, even if one was not read between a step back and one forward', () => {
    const [core, store] = [systemClock(), systemClock()]
    const before = [core.now(), store.now()]
    pass(10, -60_000)
    store.now()
    pass(10, 60_020)
    expect(store.now() - (before[1] ?? 0)).toBeGreaterThanOrEqual(60_000)
    expect(core.now() - (before[0] ?? 0)).toBe(store.now() - (before[1] ?? 0))
  })

  test('does not stop or go back when the wall clock is set back', () => {
    expect(elapsed(() => pass(10, -3_600_000))).toBe(10)
  })

  test('counts a step forward after a step back, even if they cancel out', () => {
    const passed = elapsed(now => {
      pass(10, -60_000)
      now()
      pass(10, 60_000)
    })
    expect(passed).toBeGreaterThanOrEqual(60_010)
  })

  test('is not extended by a wall clock with a resolution of 1 ms', () => {
    const passed = elapsed(now => {
      for (let i = 0; i < 100_000; i += 1) {
        pass(0.37)
        now()
      }
    })
    expect(passed).toBeCloseTo(37_000, 3)
  })

  test('follows a wall clock that is slewed forward, as the larger of the two', () => {
    const passed = elapsed(now => {
      for (let i = 0; i < 10_000; i += 1) {
        pass(1, 1.01)
        now()
      }
    })
    expect(passed).toBeGreaterThan(10_097)
    expect(passed).toBeLessThan(10_103)
  })

  describe('S3: a pause of this thread between two reads of the clocks', () => {
    /** The `nth` read of a clock, of either kind, is followed by `happening`. */
    function pauseAfter(nth: number, happening: () => void): void {
      let reads = 0
      const read = (value: number): number => {
        reads += 1
        if (reads === nth) happening()
        return value
      }
      vi.spyOn(performance, 'now').mockImplementation(() => read(monotonic))
      vi.spyOn(Date, 'now').mockImplementation(() => read(Date.UTC(2026, 0, 1) + Math.floor(wall)))
    }

    // Each `now()` reads three times; the first two calls are of `elapsed`'s own and of the test.
    test.each([4, 5, 6])('is counted once, after read %d', nth => {
      pauseAfter(nth, () => pass(400))
      const passed = elapsed(now => {
        for (let i = 0; i < 5; i += 1) {
          now()
          pass(1)
        }
      })
      expect(passed).toBeGreaterThanOrEqual(404)
      expect(passed).toBeLessThanOrEqual(406)
    })

    test.each([4, 5, 6])('is counted in addition to a sleep of the machine at the same time, after read %d', nth => {
      pauseAfter(nth, () => pass(400, 60_400))
      const passed = elapsed(now => {
        for (let i = 0; i < 5; i += 1) {
          now()
          pass(1)
        }
      })
      expect(passed).toBeGreaterThanOrEqual(60_403)
      expect(passed).toBeLessThanOrEqual(60_406)
    })
  })

  test('never goes back, whatever the clocks do', () => {
    elapsed(now => {
      let last = now()
      for (const step of [5, -5, 1_000, -1_000, 1, -1, 2.5, -2.5]) {
        pass(0.001, step)
        expect(now()).toBeGreaterThanOrEqual(last)
        last = now()
      }
    })
  })
})

test('S3: the clock does not run ahead while four processes keep the machine busy', async () => {
  const busy = Array.from({ length: 4 }, () => spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }))
  try {
    await Promise.all(busy.map(child => once(child, 'spawn')))
    const clock = systemClock()
    const [before, start] = [clock.now(), performance.now()]
    while (performance.now() < start + 5_000) clock.now()
    const passed = clock.now() - before
    const ahead = passed - (performance.now() - start)
    expect(ahead).toBeLessThan(25)
  } finally {
    for (const child of busy) child.kill('SIGKILL')
  }
}, 30_000)

test('a round trip adds whole milliseconds to a grace period, up to a second; what is no duration adds none', () => {
  expect([240.7, 5_000, Number.POSITIVE_INFINITY, -5, Number.NaN].map(ms => roundTripOf(ms))).toEqual([
    240, 1_000, 1_000, 0, 0,
  ])
})
