import { expect, test } from 'vitest'
import { FlightTimer, NoAnswer, patienceFor, within } from './timeouts.ts'

test('patience is 100 to 1,000 ms', () => {
  expect([patienceFor(), patienceFor(5_000), patienceFor(333), patienceFor(1)]).toEqual([1_000, 1_000, 333, 100])
})

test('a request that is not answered in time rejects', async () => {
  await expect(within(new Promise(() => {}), 1)).rejects.toBeInstanceOf(NoAnswer)
  await expect(within(Promise.resolve('answer'), 1_000)).resolves.toBe('answer')
})

test('one timer serves all requests in flight, at the earliest time, and none runs when nothing is due', () => {
  let now = 0
  let pending: { at: number; action: () => void } | undefined
  const checks: number[] = []
  const due = [100, 300]
  const timer = new FlightTimer(
    at => {
      checks.push(at)
      return due.find(moment => moment > at) ?? Number.POSITIVE_INFINITY
    },
    (delay, action) => {
      pending = { at: now + delay, action }
      return () => {
        pending = undefined
      }
    },
    () => now,
  )
  const advance = (): void => {
    const { at, action } = pending ?? { at: now, action: () => {} }
    pending = undefined
    now = at
    action()
  }
  timer.watch(300)
  timer.watch(100)
  timer.watch(200)
  advance()
  advance()
  expect(checks).toEqual([100, 300])
  expect(pending).toBeUndefined()
  timer.watch(400)
  timer.stop()
  expect(pending).toBeUndefined()
})
