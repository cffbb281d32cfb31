import { expect, test } from 'vitest'
import { ServerClock } from './server-clock.ts'

test('no request counts as in time before the server has reported its time', () => {
  expect(new ServerClock().at(0)).toBe(Number.POSITIVE_INFINITY)
})

test('an estimate is kept while it fits, and is never above the server’s time', () => {
  const clock = new ServerClock()
  clock.learn(1_000, 0, 10) // it answered between 0 and 10
  expect(clock.at(10)).toBe(1_000)
  clock.learn(1_015, 12, 20) // at 20 it is 1,015 to 1,023 there; the estimate says 1,010
  expect(clock.at(20)).toBe(1_015)
  clock.learn(1_020, 20, 30)
  expect(clock.at(30)).toBe(1_025)
})

test('a clock that was set back is followed', () => {
  const clock = new ServerClock(1)
  clock.learn(1_000, 0, 10)
  clock.learn(500, 20, 30)
  expect(clock.at(30)).toBe(500)
})

test('the estimate for several servers is the lowest', () => {
  const clock = new ServerClock()
  clock.lower(1_000, 0, 10)
  clock.lower(2_000, 10, 20)
  expect(clock.at(10)).toBe(1_000)
  clock.lower(900, 20, 30)
  expect(clock.at(30)).toBe(900)
})
