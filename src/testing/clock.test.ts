import fc from 'fast-check'
import { expect, test } from 'vitest'
import { VirtualClock } from './clock.ts'

test('timers run in order of time, and in order of creation at the same time', async () => {
  const clock = new VirtualClock()
  const ran: string[] = []
  clock.after(20, () => ran.push(`c at ${clock.now()}`))
  clock.after(10, () => ran.push(`a at ${clock.now()}`))
  clock.after(10, () => ran.push(`b at ${clock.now()}`))
  clock.after(21, () => ran.push('too late'))
  await clock.advance(20)
  expect(ran).toEqual(['a at 10', 'b at 10', 'c at 20'])
  expect(clock.now()).toBe(20)
  expect(clock.pending).toBe(1)
})

test('the consequences of a timer happen before the next timer, at its time', async () => {
  const clock = new VirtualClock()
  const seen: number[] = []
  const loop = async (): Promise<void> => {
    for (let i = 0; i < 3; i += 1) {
      await new Promise<void>(resolve => clock.after(10, resolve))
      for (let hops = 0; hops < 100; hops += 1) await Promise.resolve()
      seen.push(clock.now())
    }
  }
  const looped = loop()
  clock.after(15, () => seen.push(clock.now()))
  await clock.advance(30)
  expect(seen).toEqual([10, 15, 20, 30])
  await looped
})

test('a cancelled timer never runs, even if a timer of the same time cancels it', async () => {
  const clock = new VirtualClock()
  const ran: string[] = []
  const stopFirst = clock.after(5, () => ran.push('first'))
  clock.after(10, () => stopThird())
  const stopThird = clock.after(10, () => ran.push('third'))
  stopFirst()
  stopFirst()
  await clock.advance(100)
  stopThird()
  expect(ran).toEqual([])
  expect(clock.pending).toBe(0)
})

test('blocked time passes at once, and due timers run afterwards, in order', async () => {
  const clock = new VirtualClock()
  const ran: number[] = []
  clock.after(20, () => ran.push(clock.now()))
  clock.after(10, () => ran.push(clock.now()))
  const blocked = clock.block(50)
  expect(clock.now()).toBe(50)
  expect(ran).toEqual([])
  await blocked
  expect(ran).toEqual([50, 50])
})

test('a timer with a delay of 0 or less runs at the next advance, not before', async () => {
  const clock = new VirtualClock()
  const ran: number[] = []
  for (const delay of [0, -5]) clock.after(delay, () => ran.push(delay))
  expect(ran).toEqual([])
  await clock.advance(0)
  expect(ran).toEqual([0, -5])
})

test('time never goes back, even if one advance overlaps another', async () => {
  const clock = new VirtualClock()
  const first = clock.advance(10)
  const second = clock.advance(100)
  clock.after(5, () => void clock.advance(200))
  await Promise.all([first, second])
  await clock.advance(0)
  expect(clock.now()).toBeGreaterThanOrEqual(100)
  const before = clock.now()
  await clock.advance(1)
  expect(clock.now()).toBe(before + 1)
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5s', undefined])('advance and block refuse %o', async ms => {
  const clock = new VirtualClock()
  for (const pass of ['advance', 'block'] as const)
    await expect(clock[pass](ms as number)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^the time to advance must be a finite number of milliseconds, 0 or more, not /),
    })
  expect(clock.now()).toBe(0)
})

test('the wall clock advances with it, from a constant start', async () => {
  const clock = new VirtualClock()
  expect(clock.wall()).toBe(Date.UTC(2026, 0, 1))
  await clock.advance(1_500)
  expect(clock.wall()).toBe(Date.UTC(2026, 0, 1, 0, 0, 1, 500))
})

test('any timers run once each, in order and at their times', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(50)), fc.array(fc.nat(30)), async (delays, steps) => {
      const clock = new VirtualClock()
      const ran: [at: number, index: number][] = []
      for (const [index, delay] of delays.entries()) clock.after(delay, () => ran.push([clock.now(), index]))
      for (const step of steps) await clock.advance(step)
      const now = steps.reduce((sum, step) => sum + step, 0)
      expect(clock.now()).toBe(now)
      const due = delays.map((delay, index) => [delay, index]).filter(([delay = 0]) => delay <= now && steps.length > 0)
      expect(ran).toEqual(due.sort(([a = 0, i = 0], [b = 0, j = 0]) => a - b || i - j))
      expect(clock.pending).toBe(delays.length - due.length)
    }),
    { numRuns: 50 },
  )
})
