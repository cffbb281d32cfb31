import { expect, test } from 'vitest'
import { refused } from '../../../test/scripted-store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { workerStatistics } from './disruptions.ts'
import { claim, id, MARGIN, TTL, thread } from './test/managed.ts'

const GONE = Number.NEGATIVE_INFINITY

test('it renews, writes what remains, and notifies subscribers', async () => {
  const { term, live, notifications, store } = await thread()
  await live(TTL)
  expect(store.count('renew')).toBe(3)
  expect(term.read()).toBe(TTL - MARGIN - (TTL - 17_500 - 2 * 20_000))
  expect(notifications.map(({ kind }) => kind)).toEqual(['renewed', 'renewed', 'renewed'])
  expect(notifications[0]).toMatchObject({ id, latency: 0, margin: TTL - MARGIN - 17_500 })
  expect(store.calls).toEqual(['renew', 'renew', 'renew'])
})

test('it renews with the latest note of the main thread, for a store that restores it', async () => {
  const { live, store, execute } = await thread()
  await execute({ kind: 'annotated', id, note: 'new' })
  await live(TTL / 2)
  expect(store.claim?.note).toBe('new')
  await execute({ kind: 'annotated', id: 'unknown', note: 'of one that was stopped' })
})

test('it stops renewing while the main thread is blocked for longer than its limit', async () => {
  const { live, notifications, store, clock } = await thread({ maxBlocked: 10_000 })
  await clock.advance(20_000)
  expect(store.count('renew')).toBe(0)
  expect(notifications[0]).toMatchObject({ kind: 'failed', error: { code: 'STORE_UNAVAILABLE', retryable: true } })
  expect(notifications[0]).toMatchObject({
    error: { message: 'not renewed: the event loop was blocked for 17500 ms, and maxBlocked allows 10000 ms' },
  })
  await live(1_000)
  expect(store.count('renew')).toBe(1)
})

test('a blocked main thread loses its lease within its limit and the ttl, permanently', async () => {
  const { term, live, notifications, store, clock } = await thread({ maxBlocked: 30_000 })
  await clock.advance(30_000 + TTL - MARGIN)
  expect(store.count('renew')).toBe(1)
  expect(notifications.at(-1)).toEqual({ kind: 'over', id })
  await live(2 * TTL)
  expect(store.count('renew')).toBe(1)
  term.read()
  expect(notifications.at(-1)).toEqual({ kind: 'over', id })
})

test('a broken lease is reported as gone', async () => {
  const { term, live, notifications, other } = await thread()
  await other.break('a')
  await live(18_000)
  expect(term.read()).toBe(GONE)
  expect(notifications).toEqual([{ kind: 'over', id }])
})

test('a store that fails is retried until the deadline, and each failure is reported', async () => {
  const { term, live, notifications, store } = await thread()
  term.read()
  store.rule('renew', refused)
  await live(20_000)
  const count = store.count('renew')
  expect(count).toBeGreaterThan(2)
  expect(notifications.map(({ kind }) => kind)).toEqual(Array(count).fill('failed'))
  await live(TTL)
  expect(notifications.at(-1)).toEqual({ kind: 'over', id })
  const remaining = term.read()
  expect(remaining).toBeLessThan(TTL - MARGIN - 17_500)
})

test('it is not renewed after its maxHold', async () => {
  const { live, store } = await thread({ maxHold: 30_000 })
  await live(50_000)
  expect(store.count('renew')).toBe(1)
})

test('a shorter ttl counts from before its request', async () => {
  const { term, notifications, store, execute, clock } = await thread()
  term.read()
  store.holdRequests('renew')
  const extended = execute({ kind: 'extend', id, ttl: 6_000, from: 6_000, call: 1 })
  await clock.advance(0)
  expect(term.read()).toBe(6_000 - 62)
  await clock.advance(5_000)
  await extended
  const answer = notifications.find(({ kind }) => kind === 'extended')
  expect(answer).toMatchObject({ kind: 'extended', call: 1, error: { code: 'OUTCOME_UNKNOWN' } })
})

test('a longer ttl that the main thread gave up is not asked for, or is taken back', async () => {
  const { live, store, execute, clock, server } = await thread()
  const remaining = async (): Promise<number> => {
    for await (const record of server.inspect({ name: 'a' }, new AbortController().signal))
      if (record.state === 'held') return record.remaining
    return Number.NaN
  }
  // It waits for a renewal in flight.
  const answer = store.holdReplies('renew')
  await live(18_000)
  const waiting = execute({ kind: 'extend', id, ttl: 600_000, from: TTL, call: 1 })
  await execute({ kind: 'keep', id, ttl: TTL })
  answer()
  await clock.advance(0)
  await waiting
  expect(await remaining()).toBeLessThanOrEqual(TTL)
  // It is in flight itself.
  store.restore('renew')
  await live(6_000)
  const late = store.holdReplies('renew')
  const sent = execute({ kind: 'extend', id, ttl: 600_000, from: TTL, call: 2 })
  await clock.advance(0)
  await execute({ kind: 'keep', id, ttl: TTL })
  expect(await remaining()).toBe(600_000)
  late()
  store.restore('renew')
  await clock.advance(0)
  await sent
  await clock.advance(0)
  expect(await remaining()).toBe(TTL)
  // Its answer arrived when the main thread had just given up.
  await execute({ kind: 'extend', id, ttl: 600_000, from: TTL, call: 3 })
  await execute({ kind: 'keep', id, ttl: TTL })
  await clock.advance(0)
  expect(await remaining()).toBe(TTL)
})

test('an extension waits for the renewal in flight, so that its own ttl counts', async () => {
  const { term, live, notifications, store, execute, clock } = await thread()
  const answer = store.holdReplies('renew')
  await live(18_000)
  const extended = execute({ kind: 'extend', id, ttl: 20_000, from: 20_000, call: 1 })
  await clock.advance(500)
  expect(store.count('renew')).toBe(1)
  answer()
  await clock.advance(0)
  await extended
  expect(term.read()).toBe(20_000 - 202)
  expect(notifications.at(-1)).toEqual({ kind: 'extended', call: 1, error: undefined })
  await live(20_000)
  expect(store.count('renew')).toBe(2 + 3)
})

test('an extension directly after a grant that is longer than the ttl counts', async () => {
  const { term, execute, store, clock } = await thread({ claim: { ...claim, ttl: 1_100 } }) // the store granted TTL
  const arrive = store.holdRequests('renew')
  const extended = execute({ kind: 'extend', id, ttl: 2 * TTL, from: 1_100, call: 1 })
  await clock.advance(0)
  expect(term.read()).toBe(TTL - MARGIN) // until then the grant lasts
  arrive()
  await extended
  expect(term.read()).toBe(2 * TTL - 1_202)
})

test('a loss that the store reports can be read at once', async () => {
  const { term, notifications, store } = await thread()
  store.notifyLoss.get('a1')?.()
  expect(term.read()).toBe(GONE)
  expect(notifications).toEqual([{ kind: 'over', id }])
})

test('its renewals count in the advice of the main thread at once', async () => {
  const { statistics, live, store, clock } = await thread()
  store.rule('renew', async forward => {
    const grant = await forward()
    await new Promise<void>(resolve => clock.after(300, resolve))
    return grant
  })
  await live(100 * 20_000)
  const { heartbeats, failed, latency, unresponsiveness, leastTtl } = statistics.advice()
  expect({ heartbeats, failed, unresponsiveness }).toEqual({ heartbeats: 100, failed: 0, unresponsiveness: 300 })
  expect(latency?.worst).toBeCloseTo(300, -1)
  expect(leastTtl).toBeGreaterThanOrEqual(3_000)
  store.rule('renew', refused)
  await live(22_000)
  expect(statistics.advice()).toMatchObject({ heartbeats: 100, unresponsiveness: expect.any(Number) })
  expect(statistics.advice().failed).toBeGreaterThan(1)
  expect(statistics.advice().unresponsiveness).toBeGreaterThan(1_000)
})

test('a thread that replaces another one continues its statistics', async () => {
  const { statistics, shared, live, store } = await thread()
  store.rule('renew', refused)
  await live(22_000)
  const { failed, unresponsiveness } = statistics.advice()
  const next = workerStatistics({ clock: new VirtualClock(), random: () => 0.5 }, shared)
  next.pause()
  expect(statistics.advice()).toMatchObject({ failed, unresponsiveness })
})

test('a renewal that was not sent because the main thread was blocked is no failure of the store', async () => {
  const { statistics, notifications, live, store, clock } = await thread({ maxBlocked: 10_000 })
  await clock.advance(20_000)
  expect(notifications[0]).toMatchObject({ kind: 'failed' })
  await live(1_000)
  expect(store.count('renew')).toBe(1)
  expect(statistics.advice()).toMatchObject({ heartbeats: 1, failed: 0, unresponsiveness: 0 })
})

test('only a renewal that takes a tenth of the ttl or longer is reported as slow', async () => {
  const { notifications, store, execute, clock } = await thread()
  await execute({ kind: 'extend', id, ttl: 6_000, from: 6_000, call: 1 })
  for (const latency of [590, 610]) {
    store.rule('renew', async forward => {
      const grant = await forward()
      await new Promise<void>(resolve => clock.after(latency, resolve))
      return grant
    })
    const extended = execute({ kind: 'extend', id, ttl: 6_000, from: 6_000, call: latency })
    await clock.advance(latency)
    await extended
  }
  expect(notifications.filter(({ kind }) => kind === 'slow')).toEqual([{ kind: 'slow', id }])
})
