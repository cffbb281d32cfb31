import { expect, test } from 'vitest'
import { lost, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import { VirtualClock } from '../testing/clock.ts'
import { Heartbeat, type Renewable } from './heartbeat.ts'

// Renewals that fail or are not answered, and what the heartbeat sends after them.

test('an answer after the retry was sent still counts', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const failures: unknown[] = []
  const stop = subscribe('heartbeat_failed', event => failures.push(event))
  store.rule('renew', async forward => {
    await new Promise<void>(resolve => clock.after(2_900, resolve))
    return forward()
  })
  await clock.advance(2_625 + 10 * 3_000)
  stop()
  expect(store.count('renew')).toBeLessThanOrEqual(3 * 11)
  expect(failures).toEqual([])
  lease.assertHeld()
})

test('an attempt that fails after a later one was answered is no failure', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const failures: unknown[] = []
  const stop = subscribe('heartbeat_failed', event => failures.push(event))
  store.rule('renew', lost)
  await clock.advance(2_625)
  store.restore('renew')
  await clock.advance(1_350)
  expect(lease.remaining).toBe(9_000 - 92)
  await clock.advance(1_650) // the first is given up
  stop()
  expect(failures).toEqual([])
  expect(store.count('renew')).toBe(3) // the beat is at 5,625, too
})

test('an attempt that is given up does not end the retry of a later one', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  await using _ = await locks.acquire('a')
  store.rule('renew', lost)
  await clock.advance(2_625)
  store.restore('renew')
  await clock.advance(1_350)
  store.rule('renew', lost)
  await clock.advance(1_650) // the first is given up, and the next beat is lost
  expect(store.count('renew')).toBe(3)
  store.restore('renew')
  await clock.advance(1_350)
  expect(store.count('renew')).toBe(4)
})

test('a lease that another one ends while both are retried is not renewed any more', async () => {
  const clock = new VirtualClock()
  const heartbeat = new Heartbeat(clock, () => 1)
  let [first, second] = [0, 0]
  const unanswered = new Promise<never>(() => {})
  heartbeat.join({
    ttl: 9_000,
    renewedAt: 0,
    renew() {
      first += 1
      if (first === 2) heartbeat.leave(entry) // as a set does when one of its leases is lost
      return unanswered
    },
  })
  const other: Renewable = {
    ttl: 9_000,
    renewedAt: 0,
    renew() {
      second += 1
      return unanswered
    },
  }
  const entry = heartbeat.join(other)
  await clock.advance(9_000)
  expect(first).toBeGreaterThan(2)
  expect(second).toBe(1)
})

test('leases that are released without an answer do not hold up the next ones', async () => {
  const clock = new VirtualClock()
  const heartbeat = new Heartbeat(clock, () => 1)
  const hanging = Array.from({ length: 256 }, () =>
    heartbeat.join({ ttl: 9_000, renewedAt: 0, renew: () => new Promise<never>(() => {}) }),
  )
  const next = {
    ttl: 9_000,
    renewedAt: 0,
    async renew() {
      next.renewedAt = clock.now()
      return undefined
    },
  }
  heartbeat.join(next)
  await clock.advance(3_000)
  for (const entry of hanging) heartbeat.leave(entry)
  await clock.advance(500)
  expect(next.renewedAt).toBeGreaterThan(3_000)
})
