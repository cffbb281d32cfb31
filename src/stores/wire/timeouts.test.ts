import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { FlightTimer, inTime, NoAnswer, patienceFor } from './timeouts.ts'

test('patience is 100 to 1,000 ms', () => {
  expect([patienceFor(), patienceFor(5_000), patienceFor(333), patienceFor(1)]).toEqual([1_000, 1_000, 333, 100])
})

test('a request that is not answered in time rejects', async () => {
  await expect(inTime(new Promise(() => {}), 1)).rejects.toBeInstanceOf(NoAnswer)
  await expect(inTime(Promise.resolve('answer'), 1_000)).resolves.toBe('answer')
})

test('an answer that came while the event loop was blocked is in time', async () => {
  const { port1, port2 } = new MessageChannel()
  onTestFinished(() => port1.close())
  await new Promise(resolve => setImmediate(resolve)) // timers are next, and messages are read after them
  const answer = inTime(once(port1, 'message'), 1)
  port2.postMessage('answer')
  const end = performance.now() + 20
  while (performance.now() < end);
  expect(await answer).toEqual(['answer'])
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
    {
      now: () => now,
      after: (delay, action) => {
        pending = { at: now + delay, action }
        return () => {
          pending = undefined
        }
      },
    },
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
  for (let i = 0; i < 4; i += 1) advance() // each check comes after what has arrived is read
  expect(checks).toEqual([100, 300])
  expect(pending).toBeUndefined()
  timer.watch(400)
  timer.stop()
  expect(pending).toBeUndefined()
})
