import { expect, test } from 'vitest'
import { Waiters } from './waiters.ts'

const never = new AbortController().signal

test('a waiter is woken until its signal aborts', () => {
  const waiters = new Waiters(performance)
  const controller = new AbortController()
  const delays: (number | undefined)[] = []
  waiters.add('a', delay => delays.push(delay), controller.signal)
  waiters.notify('a', 100)
  waiters.notifyAll()
  controller.abort()
  waiters.notify('a', 0)
  expect(delays).toEqual([100, undefined])
  expect(waiters.size).toBe(0)
})

test('a notification that comes before its waiter is kept for it, once', () => {
  const waiters = new Waiters(performance)
  let woken = 0
  const wake = (): void => {
    woken += 1
  }
  waiters.notify('a', 0)
  waiters.add('a', wake, never)
  expect(woken).toBe(1)
  waiters.add('a', wake, never)
  expect(woken).toBe(1)
})

test('of several early notifications the soonest counts', () => {
  const waiters = new Waiters({ now: () => 0 })
  for (const delay of [100, 10, 200]) waiters.notify('a', delay)
  const delays: (number | undefined)[] = []
  waiters.add('a', delay => delays.push(delay), never)
  expect(delays).toEqual([10])
})

test('keeps the newest thousand of early notifications', () => {
  const waiters = new Waiters(performance)
  for (let i = 0; i <= 1_000; i++) waiters.notify(String(i), 0)
  const woken: number[] = []
  for (const i of [0, 1, 1_000]) waiters.add(String(i), () => woken.push(i), never)
  expect(woken).toEqual([1, 1_000])
})

test('a waiter that was added again outlives the signal of the first', () => {
  const waiters = new Waiters(performance)
  const first = new AbortController()
  let woken = 0
  waiters.add('a', () => {}, first.signal)
  waiters.add('a', () => (woken += 1), never)
  first.abort()
  waiters.notify('a', 0)
  expect(woken).toBe(1)
})
