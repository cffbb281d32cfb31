import { expect, test } from 'vitest'
import { refused, unanswered } from '../../../test/scripted-store.ts'
import { id, MARGIN, TTL, thread } from './test/managed.ts'

test('a stop is confirmed when no renewal is in flight, and none follows', async () => {
  const { term, live, notifications, store, execute, clock } = await thread()
  const answer = store.holdReplies('renew')
  await live(18_000)
  const stopped = execute({ kind: 'stop', id })
  await clock.advance(1_000)
  expect(notifications).toEqual([])
  answer()
  await clock.advance(0)
  await stopped
  expect(notifications).toEqual([{ kind: 'stopped', id, unsettled: false }])
  await live(2 * TTL)
  expect(store.count('renew')).toBe(1)
  expect(store.count('release')).toBe(0)
  expect(clock.pending).toBe(0)
  // For the main thread, which may have stopped only the renewals, the lease lasts until its deadline.
  expect(term.read()).toBe(TTL - MARGIN - 19_000 - 2 * TTL)
})

test('a stop reports whether a renewal was unanswered', async () => {
  const { live, notifications, store, execute, clock } = await thread()
  store.rule('renew', unanswered)
  await live(18_000)
  const stopped = execute({ kind: 'stop', id })
  await clock.advance(5_000)
  await stopped
  expect(notifications.at(-1)).toEqual({ kind: 'stopped', id, unsettled: true })
})

test('the stop of a stopped or unknown lease is confirmed as well', async () => {
  const { notifications, execute } = await thread()
  await execute({ kind: 'stop', id: 'other' })
  expect(notifications).toEqual([{ kind: 'stopped', id: 'other', unsettled: false }])
})

test('a stop waits for the extension in flight, which is answered', async () => {
  const { notifications, store, execute, clock } = await thread()
  const answer = store.holdReplies('renew')
  const extended = execute({ kind: 'extend', id, ttl: TTL, from: TTL, call: 7 })
  const stopped = execute({ kind: 'stop', id })
  await clock.advance(1_000)
  expect(notifications).toEqual([])
  answer()
  await clock.advance(0)
  await Promise.all([extended, stopped])
  expect(notifications).toEqual([
    { kind: 'extended', call: 7, error: undefined },
    { kind: 'stopped', id, unsettled: false },
  ])
})

test('an extension that waits until a failed renewal can no longer arrive is not sent after a stop', async () => {
  const { term, notifications, store, execute, live, clock } = await thread()
  store.rule('renew', refused)
  await live(TTL / 3)
  store.restore('renew')
  const extended = execute({ kind: 'extend', id, ttl: 2 * TTL, from: TTL, call: 7 })
  await clock.advance(0)
  const count = store.count('renew')
  term.stop()
  const stopped = execute({ kind: 'stop', id })
  await clock.advance(0)
  await Promise.all([extended, stopped])
  const error = { code: 'STORE_UNAVAILABLE', message: 'not sent: the renewals were stopped; try again' }
  expect(notifications.slice(-2)).toMatchObject([{ kind: 'extended', error }, { kind: 'stopped' }])
  expect(store.count('renew')).toBe(count)
})

test('after a renewal that failed, a stop says for 5 s that it may still arrive', async () => {
  for (const [since, unsettled] of [
    [4_000, true],
    [6_000, false],
  ] as const) {
    const { notifications, store, execute, live } = await thread()
    store.rule('renew', refused)
    await live(TTL / 3)
    store.restore('renew')
    await live(since)
    await execute({ kind: 'stop', id })
    expect(notifications.at(-1)).toEqual({ kind: 'stopped', id, unsettled })
  }
})

test('nothing is sent once the main thread has stopped the renewals, also before the command arrives', async () => {
  const { term, live, notifications, store, execute } = await thread()
  term.stop()
  const extended = [execute({ kind: 'extend', id, ttl: TTL, from: TTL, call: 7 })]
  extended.push(execute({ kind: 'extend', id, ttl: TTL, from: TTL, call: 8 }))
  await live(TTL / 2)
  await Promise.all([...extended, execute({ kind: 'stop', id })])
  const refused = { kind: 'extended', error: { code: 'STORE_UNAVAILABLE', retryable: true } }
  expect(notifications.filter(({ kind }) => kind !== 'failed')).toMatchObject([refused, refused, { kind: 'stopped' }])
  expect(store.count('renew')).toBe(0)
})
