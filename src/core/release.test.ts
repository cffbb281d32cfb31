import { expect, test } from 'vitest'
import { follow, lost, refused, stage, unanswered } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { LeaseEnd } from '../contract/lease.ts'

test.each([
  ['cannot be reached', refused],
  ['does not answer', lost],
])('S5: a lost lease over a store that %s is released at once, and withdrawn in the background', async (_, rule) => {
  const { locks, clock, store, other } = stage()
  const lease = await locks.acquire('a')
  store.ruleAll(rule)
  await clock.advance(10_000)
  const release = follow(lease.release())
  await clock.advance(0)
  expect(release.value).toBe('lost')
  await clock.advance(3_334)
  expect(store.count('release')).toBeGreaterThan(0)
  store.restore('release')
  await clock.advance(5_000)
  expect(clock.pending).toBe(0)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('S5: after maxHold the name may still be held: release waits for the withdrawal, for 1 s at most', async () => {
  const { locks, clock, store, other } = stage({ maxHold: 5_000 })
  const freed = await locks.acquire('a')
  const unreachable = await locks.acquire('b')
  await clock.advance(5_000)
  expect(await freed.release()).toBe('lost')
  expect(await other.tryAcquire('a')).toBeDefined()
  store.ruleAll(lost)
  const release = follow(unreachable.release())
  await clock.advance(999)
  expect(release.settled).toBe(false)
  await clock.advance(1)
  expect(release.value).toBe('lost')
})

test('S5: after a clock jump the name may still be held: release waits for the withdrawal', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  const answer = store.holdReplies('release')
  await clock.block(60_000)
  const release = follow(lease.release())
  await clock.advance(0)
  expect(release.settled).toBe(false)
  answer()
  await clock.advance(0)
  expect(release.value).toBe('lost')
})

test('a listener that releases when the lease is lost joins the release that detected it', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a', { heartbeat: false })
  const { signal } = lease
  let inner: Promise<LeaseEnd> | undefined
  signal.addEventListener('abort', () => {
    inner = lease.release()
  })
  void clock.block(10_000)
  const outer = lease.release()
  expect(inner).toBe(outer)
  expect(await outer).toBe('lost')
  expect(store.count('release')).toBe(1)
})

test('F1: a release frees the name at once and reports it, aborts no signal and closes the lease', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  expect(await lease.release()).toBe('released')
  expect(lease.signal.aborted).toBe(false)
  expect(lease.remaining).toBe(0)
  expect(() => lease.assertHeld()).toThrow(
    expect.objectContaining({ code: 'CLOSED', message: 'the lease "a" was released' }),
  )
  await expect(lease.extend()).rejects.toMatchObject({ code: 'CLOSED' })
  expect(clock.pending).toBe(0)
  expect(await other.tryAcquire('a')).toBeDefined()
  await clock.advance(60_000)
  expect(store.calls).toEqual(['acquire', 'release'])
  expect(lease.signal.aborted).toBe(false)
})

test('F1: a lease that expires during its release is not lost, because the work had ended before', async () => {
  const { locks, clock, store } = stage({ heartbeat: false })
  const { promise: work, resolve } = Promise.withResolvers<string>()
  const using = follow(locks.using('a', () => work))
  await clock.advance(9_000)
  const deliver = store.holdRequests('release')
  resolve('done')
  await clock.advance(1_500)
  deliver()
  await clock.advance(0)
  expect(using).toMatchObject({ value: 'done', error: undefined })
})

test('a second release or disposal resolves to the same and sends no request', async () => {
  const { locks, other, store } = stage()
  const lease = await locks.acquire('a')
  const first = lease.release()
  expect(lease.release()).toBe(first)
  await first
  const next = await other.acquire('a')
  await lease.release()
  await lease[Symbol.asyncDispose]()
  expect(store.count('release')).toBe(1)
  next.assertHeld()
  expect((await other.inspect('a')).holders[0]?.token).toBe(next.token)
})

test('a stale release never frees the next holder', async () => {
  const { locks, other, clock, store } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  const deliver = store.holdRequests('release')
  const release = follow(lease.release())
  await clock.advance(10_000)
  const next = await other.acquire('a')
  deliver()
  await clock.advance(0)
  expect(release.settled).toBe(true)
  expect((await other.inspect('a')).holders[0]?.token).toBe(next.token)
})

test('a release waits for the renewal in flight, which cannot set the lease again after it', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  const deliver = store.holdRequests('renew')
  await clock.advance(3_333)
  expect(store.calls).toEqual(['acquire', 'renew'])
  const release = follow(lease.release())
  await clock.advance(100)
  expect(store.calls).toEqual(['acquire', 'renew'])
  deliver()
  await clock.advance(0)
  expect(store.calls).toEqual(['acquire', 'renew', 'release'])
  expect(release).toMatchObject({ settled: true, error: undefined })
  expect(await other.tryAcquire('a')).toBeDefined()
  expect(clock.pending).toBe(1) // the heartbeat of the other's lease
})

test.each([
  ['a later one', 100],
  ['another of the same moment', 0],
])(
  'a release does not wait for a renewal without an answer if %s was answered, nor is it lost by that',
  async (_, later) => {
    const { locks, clock, store, other } = stage({ ttl: 30_000 })
    const lease = await locks.acquire('a')
    let arrive = (): void => {}
    store.rule('renew', forward => new Promise(resolve => (arrive = () => resolve(forward()))))
    const first = follow(lease.extend())
    await clock.advance(later)
    store.restore('renew')
    expect(await lease.extend()).toBeGreaterThan(29_000)
    const release = follow(lease.release())
    await clock.advance(0)
    expect(release.value).toBe('released')
    expect(await other.tryAcquire('a')).toBeDefined()
    arrive()
    await clock.advance(10_000)
    expect(first.error).toMatchObject({ code: 'CLOSED' })
    expect(release.value).toBe('released')
  },
)

test('a renewal that failed long ago costs a release no second request', async () => {
  const { locks, clock, store } = stage({ ttl: 30_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', refused)
  await expect(lease.extend()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  store.restore('renew')
  await clock.advance(60_000)
  expect(await lease.release()).toBe('released')
  expect(store.count('release')).toBe(1)
})

test('a renewal that arrives after the release leaves nothing behind', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const deliver = store.holdRequests('renew')
  await clock.advance(2_625)
  const release = follow(lease.release())
  await clock.advance(3_000)
  expect(release.value).toBe('unknown') // its caller waits for 2 s, and for the renewal 3 s
  expect(store.calls).toEqual(['acquire', 'renew', 'release', 'release'])
  deliver()
  await clock.advance(0)
  expect((await other.inspect('a')).holders[0]).toBeUndefined()
})

test('an acquire that arrives after its repetition was granted and released leaves nothing behind', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  const deliver = store.holdRequests('acquire')
  const acquiring = locks.acquire('a')
  await clock.advance(0)
  store.restore('acquire')
  await clock.advance(3_020)
  const lease = await acquiring
  await lease.release()
  expect(store.calls).toEqual(['acquire', 'acquire', 'release', 'release'])
  deliver()
  await clock.advance(0)
  expect((await other.inspect('a')).holders[0]).toBeUndefined()
})

test('F1: a release that finds the lease broken aborts the signal, emits lease_lost, then answers lost', async () => {
  const { locks, other } = stage()
  const lease = await locks.acquire('a')
  await other.break('a')
  const told: unknown[] = []
  lease.signal.addEventListener('abort', () => told.push('abort'))
  const stop = subscribe('lease_lost', event => told.push(event.reason, event.lease === lease))
  told.push(await lease.release())
  stop()
  expect(told).toEqual(['abort', 'gone', true, 'lost'])
  expect(lease.signal.reason).toMatchObject({
    code: 'LEASE_LOST',
    message: 'the lease "a" was gone when it was released',
  })
  expect(() => lease.assertHeld()).toThrow('was gone when it was released')
})

test('F1: a release that finds nothing after one that failed is unknown: the lease may have been lost before', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  const failed: unknown[] = []
  const stop = subscribe('release_failed', ({ lease, error }) => failed.push(lease?.name, error.code))
  const lease = await locks.acquire('a')
  store.rule('release', unanswered)
  const release = follow(lease.release())
  await clock.advance(1_000)
  store.restore('release')
  await clock.advance(100)
  stop()
  expect(release.value).toBe('unknown')
  expect(failed).toEqual(['a', 'OUTCOME_UNKNOWN'])
  expect(lease.signal.aborted).toBe(false)
})

test('F1: a release that the store confirms after 2 s is unknown to the caller, and is still reported', async () => {
  const { locks, clock, store, other } = stage()
  const reported: string[] = []
  const stop = subscribe('lease_released', ({ lease }) => reported.push(lease.name))
  const lease = await locks.acquire('a')
  store.rule('release', lost)
  const release = follow(lease.release())
  await clock.advance(1_399)
  const deliver = store.holdRequests('release')
  await clock.advance(600)
  expect(release.settled).toBe(false)
  await clock.advance(1)
  expect([release.value, await lease.ended, reported]).toEqual(['unknown', 'unknown', []])
  deliver()
  await clock.advance(0)
  stop()
  expect(reported).toEqual(['a'])
  expect(await other.tryAcquire('a')).toBeDefined()
})

test.each([
  ['does not answer', lost, 'OUTCOME_UNKNOWN'],
  ['cannot be reached', refused, 'STORE_UNAVAILABLE'],
])('F1, S5: a release over a store that %s answers unknown within 2 s', async (_, rule, code) => {
  const { locks, clock, store } = stage()
  const failed: string[] = []
  const stop = subscribe('release_failed', ({ error }) => failed.push(error.code))
  const lease = await locks.acquire('a')
  store.ruleAll(rule)
  const release = follow(lease.release())
  await clock.advance(2_000)
  expect(release).toEqual({ settled: true, value: 'unknown', error: undefined })
  await clock.advance(3_000)
  stop()
  expect(failed).toEqual([code])
  expect(clock.pending).toBe(0)
})

test('S5: a release during a renewal that is never answered settles within 2 s', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  await clock.advance(2_900)
  store.ruleAll(lost)
  await clock.advance(100)
  const release = follow(lease.release())
  await clock.advance(2_000)
  expect(release.value).toBe('unknown')
  await clock.advance(3_334 + 5_000)
  expect(clock.pending).toBe(0)
})

test('disposal settles likewise, and never rejects', async () => {
  const { locks, clock, store, other } = stage()
  const unreachable = await locks.acquire('a')
  const broken = await locks.acquire('b')
  await other.break('b')
  await broken[Symbol.asyncDispose]()
  store.ruleAll(refused)
  const disposal = follow(unreachable[Symbol.asyncDispose]())
  await clock.advance(2_000)
  expect(disposal).toMatchObject({ settled: true, error: undefined })
})

test('a lease ends with the block that uses it', async () => {
  const { locks, other } = stage()
  {
    await using lease = await locks.acquire('a')
    await using none = await locks.tryAcquire('a')
    lease.assertHeld()
    expect(none).toBeUndefined()
  }
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('a renewal that is granted a shorter ttl during the release leaves no timer', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.rule('renew', async forward => ({ ...((await forward()) as object), ttl: 1_000 }))
  const extension = follow(lease.extend())
  const release = follow(lease.release())
  await clock.advance(0)
  expect(extension.error).toMatchObject({ code: 'CLOSED' })
  expect(release).toMatchObject({ settled: true, error: undefined })
  expect(clock.pending).toBe(0)
})
