import { expect, test } from 'vitest'
import { follow, lost, refused, stage, unanswered } from '../test/scripted-store.ts'

test('release of a lease that was lost says so, also when the store does not answer', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.ruleAll(refused)
  await clock.advance(10_000)
  const release = follow(lease.release())
  await clock.advance(5_000)
  expect(release.error).toMatchObject({ code: 'LEASE_LOST' })
})

test('a listener that releases when the lease is lost joins the release that found it out', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a', { heartbeat: false })
  const { signal } = lease
  let inner: Promise<void> | undefined
  signal.addEventListener('abort', () => {
    inner = lease.release()
  })
  void clock.block(10_000)
  const outer = lease.release()
  expect(inner).toBe(outer)
  await expect(outer).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect(store.count('release')).toBe(1)
})

test('a release frees the name at once, aborts no signal and closes the lease', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  await lease.release()
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

test('releasing again answers the same and asks nothing, nor does disposal', async () => {
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
  expect((await other.inspect('a')).holder?.token).toBe(next.token)
})

test('a late release never frees the next holder', async () => {
  const { locks, other, clock, store } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  const deliver = store.holdRequests('release')
  const release = follow(lease.release())
  await clock.advance(10_000)
  const next = await other.acquire('a')
  deliver()
  await clock.advance(0)
  expect(release.settled).toBe(true)
  expect((await other.inspect('a')).holder?.token).toBe(next.token)
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

test('a renewal that arrives after the release leaves nothing behind', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const deliver = store.holdRequests('renew')
  await clock.advance(2_625)
  const release = follow(lease.release())
  await clock.advance(3_000)
  expect(release).toMatchObject({ settled: true, error: undefined })
  expect(store.calls).toEqual(['acquire', 'renew', 'release', 'release'])
  deliver()
  await clock.advance(0)
  expect((await other.inspect('a')).holder).toBeUndefined()
})

test('an acquire that arrives after the release of the lease that its repetition got leaves nothing behind', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  const deliver = store.holdRequests('acquire')
  const acquiring = locks.acquire('a')
  await clock.advance(0)
  store.mend('acquire')
  await clock.advance(3_020)
  const lease = await acquiring
  await lease.release()
  expect(store.calls).toEqual(['acquire', 'acquire', 'release', 'release'])
  deliver()
  await clock.advance(0)
  expect((await other.inspect('a')).holder).toBeUndefined()
})

test('a release of a lease that was broken rejects LEASE_LOST, and then aborts the signal', async () => {
  const { locks, other } = stage()
  const lease = await locks.acquire('a')
  await other.break('a')
  await expect(lease.release()).rejects.toMatchObject({
    code: 'LEASE_LOST',
    message: 'the lease "a" was gone when it was released',
  })
  expect(lease.signal.aborted).toBe(true)
  expect(() => lease.assertHeld()).toThrow('was gone when it was released')
})

test('a release whose reply was lost is asked again, and is a release', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.rule('release', unanswered)
  const release = follow(lease.release())
  await clock.advance(3_333)
  store.mend('release')
  await clock.advance(100)
  expect(release).toMatchObject({ settled: true, error: undefined })
})

test.each([
  ['does not answer', lost, 'OUTCOME_UNKNOWN'],
  ['cannot be reached', refused, 'STORE_UNAVAILABLE'],
])('a release to a store that %s settles within 5 s, and says so', async (_, rule, code) => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.ruleAll(rule)
  const release = follow(lease.release())
  await clock.advance(5_000)
  expect(release.error).toMatchObject({ code, retryable: true })
  expect(clock.pending).toBe(0)
})

test('a release during a renewal that is never answered settles within 5 s after that', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  await clock.advance(2_900)
  store.ruleAll(lost)
  await clock.advance(100)
  const release = follow(lease.release())
  await clock.advance(3_334 + 5_000)
  expect(release.settled).toBe(true)
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
  await clock.advance(5_000)
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

test('a renewal that is answered with less during the release leaves no timer', async () => {
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
