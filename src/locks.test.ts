import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { follow, lost, stage } from '../test/scripted-store.ts'
import { LeaseError } from './errors.ts'
import { StoreLocks } from './locks.ts'

test('a name that is asked for while it is held here says that this process itself holds it', async () => {
  const { locks, clock } = stage({ ttl: 5_000 })
  const outer = await locks.acquire('a')
  const inner = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(1_000)
  expect(inner.error).toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    retryable: true,
    lease: 'a',
    holder: { owner: outer.owner, token: outer.token },
    message: `"a" was not had within 1000 ms: it is held by this process itself (${outer.owner}), and not re-entrant, for another 4000 ms unless renewed`,
  })
})

test('another process of the same owner is not taken for this one', async () => {
  const { locks, server, clock } = stage({ owner: 'billing' })
  const twin = new StoreLocks(server, { owner: 'billing' }, { clock, random: () => 0.5 })
  await twin.acquire('a', { ttl: 5_000 })
  await locks.acquire('b')
  await expect(locks.acquire('a', { wait: 0 })).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    message: '"a" is held by billing, for another 5000 ms unless renewed',
  })
})

test('two Locks in one process exclude each other, and by default say which process they are', async () => {
  const { locks, server, clock } = stage()
  const second = new StoreLocks(server, {}, { clock, random: () => 0.5 })
  const lease = await locks.acquire('a')
  expect(lease.owner).toMatch(new RegExp(`^${hostname()}:${process.pid}:[0-9a-f]{6}$`))
  await expect(second.acquire('a', { wait: 0 })).rejects.toThrow(`"a" is held by ${lease.owner}, for another`)
  expect(await second.tryAcquire('a')).toBeUndefined()
  await lease.release()
  expect((await second.tryAcquire('a'))?.owner).not.toBe(lease.owner)
})

test("tryAcquire that was aborted rejects with the reason, even if that is another claim's time-out", async () => {
  const { locks, clock, store } = stage()
  store.rule('acquire', lost)
  const reason = new LeaseError('ACQUIRE_TIMEOUT', '"b" was not had')
  const controller = new AbortController()
  const attempt = follow(locks.tryAcquire('a', { signal: controller.signal }))
  await clock.advance(10)
  controller.abort(reason)
  await clock.advance(0)
  expect(attempt.error).toBe(reason)
})

test('tryAcquire asks once, joins no line and never overtakes those who wait', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  expect(await locks.tryAcquire('a')).toBeUndefined()
  expect(store.calls).toEqual(['acquire'])
  expect((await other.inspect('a')).waiters).toEqual([])
  const wait = follow(other.acquire('a'))
  await clock.advance(0)
  const mend = store.holdRequests('acquire')
  const attempt = follow(locks.tryAcquire('a'))
  await held.release()
  mend()
  await clock.advance(0)
  expect(attempt).toMatchObject({ settled: true, value: undefined, error: undefined })
  expect(wait.value).toBeDefined()
})
