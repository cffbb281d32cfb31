import { expect, test } from 'vitest'
import { follow, lost, refused, stage } from '../../test/scripted-store.ts'
import type { Busy, Grant, Wake } from '../contract/store.ts'

test('a watch that cannot be armed does not extend the wait', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  store.rule('watch', lost)
  const wait = follow(locks.acquire('a', { wait: 100 }))
  await clock.advance(100)
  expect(wait.error).toMatchObject({ code: 'BUSY', waited: 100 })
})

test('a failed watch is ended before the next attempt', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const signals: AbortSignal[] = []
  store.rule('watch', (_, signal) => {
    signals.push(signal)
    return signals.length < 4 ? lost(_, signal) : _()
  })
  const wait = follow(locks.acquire('a', { ttl: 1_000 }))
  await clock.advance(5_000)
  expect(signals.map(signal => signal.aborted)).toEqual([true, true, true, false])
  expect(wait.settled).toBe(false)
  const lease = await other.list('a')[Symbol.asyncIterator]().next()
  expect(lease.value).toMatchObject({ owner: 'other' })
})

test('a waiter is woken by the release, before its own time to ask', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(1_000)
  expect(store.calls).toEqual(['acquire', 'watch', 'acquire'])
  await held.release()
  await clock.advance(0)
  expect(wait.value?.token).toBeGreaterThan(held.token)
  expect(clock.pending).toBe(1) // the heartbeat
})

test('a name that is freed while the watch is being armed is requested right after', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  const arm = store.holdRequests('watch')
  const wait = follow(locks.acquire('a'))
  await clock.advance(10)
  await held.release()
  await clock.advance(10)
  expect(wait.settled).toBe(false)
  arm()
  await clock.advance(0)
  expect(wait.settled).toBe(true)
})

test('a wake during a request is not lost', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(0)
  const answer = store.holdReplies('acquire')
  await clock.advance(3_400) // it asks again to keep its position, and the name is still held
  expect(store.count('acquire')).toBe(3)
  store.restore('acquire')
  await held.release()
  answer()
  await clock.advance(0)
  expect(wait.settled).toBe(true)
})

test('a holder that died is followed when its ttl ends, with or without a wake', async () => {
  for (const watch of [true, false]) {
    const { locks, other, clock, store } = stage()
    if (!watch) Object.defineProperty(store, 'watch', { value: undefined })
    await other.acquire('a', { heartbeat: false })
    const wait = follow(locks.acquire('a'))
    await clock.advance(9_999)
    expect(wait.settled).toBe(false)
    await clock.advance(1)
    expect(wait.settled).toBe(true)
    expect(store.count('acquire')).toBeLessThanOrEqual(8) // it keeps its position every third of 5 s
  }
})

test('a waiter whose watch is never armed asks before its position lapses', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a', { ttl: 60_000 })
  store.rule('watch', () => new Promise(() => {}))
  void follow(locks.acquire('a', { ttl: 60_000 }))
  const asked = (): number => store.calls.filter(call => call === 'acquire').length
  for (let before = 1; before < 5; before += 1) {
    await clock.advance(4_000)
    expect(asked()).toBeGreaterThan(before)
  }
})

test('a waiter whose watch cannot be armed asks every second, and arms it when it can', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('watch', refused)
  const wait = follow(locks.acquire('a'))
  await clock.advance(5_500)
  expect(store.count('acquire')).toBe(6)
  store.restore('watch')
  await clock.advance(1_000)
  await held.release()
  await clock.advance(0)
  expect(wait.settled).toBe(true)
})

test('a wait longer than 2^31 ms works', async () => {
  const { locks, other, clock, store } = stage()
  // A waiter so far back asks rarely, else the test would take long.
  store.rule('acquire', async forward => {
    const answer = (await forward()) as Grant | Busy
    return answer.held ? answer : { ...answer, ahead: 1e6, retryAfter: Math.min(1e9, answer.holder?.remaining ?? 1) }
  })
  await other.acquire('a', { ttl: 2_147_483_647, heartbeat: false })
  const wait = follow(locks.acquire('a', { wait: 2 ** 33, ttl: 1_000_000_000 }))
  await clock.advance(2_147_483_646)
  expect(wait.settled).toBe(false)
  await clock.advance(1)
  expect(wait.settled).toBe(true)
})

test('a superfluous wake costs one request', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  let wake = (): void => {}
  Object.defineProperty(store, 'watch', {
    value: async (_: unknown, given: () => void) => {
      wake = given
    },
  })
  const wait = follow(locks.acquire('a'))
  await clock.advance(10)
  expect(store.count('acquire')).toBe(2)
  wake()
  await clock.advance(1_000)
  expect(store.count('acquire')).toBe(3)
  expect(wait.settled).toBe(false)
})

test('a wake with a delay makes the wait shorter, never longer', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  let wake: Wake = () => {}
  Object.defineProperty(store, 'watch', {
    value: async (_: unknown, given: Wake) => {
      wake = given
    },
  })
  const wait = follow(locks.acquire('a'))
  await clock.advance(10)
  expect(store.count('acquire')).toBe(2)
  wake(100)
  wake(5_000)
  await clock.advance(99)
  expect(store.count('acquire')).toBe(2)
  await clock.advance(1)
  expect(store.count('acquire')).toBe(3)
  wake(100)
  wake()
  await clock.advance(0)
  expect(store.count('acquire')).toBe(4)
  await clock.advance(1_000)
  expect(store.count('acquire')).toBe(4)
  expect(wait.settled).toBe(false)
})

test('a waiter that is subscribed from the start asks once', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('acquire', async forward => ({ ...((await forward()) as Busy), listens: true }))
  const wait = follow(locks.acquire('a'))
  await clock.advance(1_000)
  expect(store.calls).toEqual(['acquire', 'watch'])
  await held.release()
  await clock.advance(0)
  expect(wait.settled).toBe(true)
})

test('a watch is armed after failures, and ended with the wait', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('acquire', refused)
  const signals: AbortSignal[] = []
  store.rule('watch', (forward, signal) => {
    signals.push(signal)
    return forward()
  })
  const wait = follow(locks.acquire('a'))
  const timedOut = follow(locks.acquire('a', { wait: 500 }))
  await clock.advance(100)
  store.restore('acquire')
  await clock.advance(400)
  expect(timedOut.error).toMatchObject({ code: 'BUSY' })
  expect(signals.map(signal => signal.aborted)).toEqual([false, true])
  await held.release()
  await clock.advance(0)
  expect(wait.settled).toBe(true)
  expect(signals.map(signal => signal.aborted)).toEqual([true, true])
})

test('S11: a waiter with a long ttl follows a holder that shortened its lease and died', async () => {
  const { locks, other, clock } = stage()
  const held = await other.acquire('a', { ttl: 60_000, heartbeat: false })
  const wait = follow(locks.acquire('a', { ttl: 60_000 }))
  await clock.advance(1_000)
  await held.extend(1_000) // it is over after 2 s; the waiter was told to ask after 20 s
  await clock.advance(5_000)
  expect(wait.value?.token).toBeGreaterThan(held.token)
})

test('a waiter that its store keeps without a subscription asks by itself', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('acquire', async forward => ({ ...((await forward()) as Busy), listens: false, kept: true }))
  store.rule('watch', async () => {})
  const wait = follow(locks.acquire('a', { ttl: 9_000 }))
  await clock.advance(0)
  store.restore('acquire')
  await held.release()
  await clock.advance(5_000)
  expect(wait.value?.token).toBeGreaterThan(held.token)
})

test('a kept waiter asks every 5 min as well, in case its store has forgotten it', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a', { ttl: 3_600_000 })
  store.rule('acquire', async forward => ({ ...((await forward()) as Busy), listens: true, kept: true }))
  store.rule('watch', async () => {})
  const wait = follow(locks.acquire('a', { ttl: 3_600_000 }))
  await clock.advance(0)
  store.restore('acquire')
  await held.release()
  await clock.advance(299_000)
  expect(store.count('acquire')).toBe(1)
  await clock.advance(1_000)
  expect(wait.value?.token).toBeGreaterThan(held.token)
})
