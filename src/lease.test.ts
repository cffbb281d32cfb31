import { expect, test } from 'vitest'
import { follow, refused, stage } from '../test/scripted-store.ts'

test('a renewal for NaN ms, or without a ttl, ends the lease rather than holding it for ever', async () => {
  for (const ttl of [Number.NaN, undefined]) {
    const { locks, clock, store } = stage()
    const lease = await locks.acquire('a')
    store.rule('renew', async () => ({ held: true, token: lease.token, ttl }))
    await clock.advance(5_000)
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  }
})

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

test('a heartbeat that is late past the deadline does not renew what is lost', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  await clock.block(9_900) // the store would still renew it: the margin is the holder's alone
  expect(lease.signal.aborted).toBe(true)
  expect(store.count('renew')).toBe(0)
  await clock.advance(100)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('what is still held after close is renewed no more, also when it is extended to another ttl', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  const closing = locks.close({ grace: 0 })
  await clock.advance(0)
  await closing
  await lease.extend(6_000)
  await clock.advance(6_000)
  expect(store.count('renew')).toBe(1)
  expect(() => lease.assertHeld()).toThrow('not renewed in time')
})
