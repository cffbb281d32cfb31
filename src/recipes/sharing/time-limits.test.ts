/** How long calls take while the store does not answer. docs/operations/time-limits.md has the limits. */
import { expect, test } from 'vitest'
import { follow, lost, type Stage, stage } from '../../../test/scripted-store.ts'
import { signal } from '../../../test/support.ts'
import type { AcquireOptions } from '../../core/options.ts'

const calls: [string, (stage: Stage, options: AcquireOptions) => Promise<unknown>][] = [
  ['a permit', ({ locks }, options) => locks.semaphore('x', { limit: 4 }).acquire(options)],
  ['several permits', ({ locks }, options) => locks.semaphore('x', { limit: 4 }).acquire({ ...options, permits: 2 })],
  ['a writer', ({ locks }, options) => locks.readWrite('x').writer.acquire(options)],
]

test.each(calls)('wait limits a call for %s while the store does not answer', async (_, acquire) => {
  const set = stage()
  set.store.ruleAll(lost)
  const call = follow(acquire(set, { wait: 1_000 }))
  await set.clock.advance(1_100)
  expect(call).toMatchObject({ settled: true, error: { code: 'ACQUIRE_TIMEOUT', lease: 'x' } })
  expect(String(call.error)).not.toContain('\u241f')
})

test('wait limits a call whose store does not answer once it holds the gate', async () => {
  const { locks, clock, store } = stage()
  store.rule('acquire', forward => (store.claim?.name === 'x\u241fgate' ? forward() : lost(forward, signal)))
  const call = follow(locks.semaphore('x', { limit: 16 }).acquire({ wait: 500 }))
  await clock.advance(600)
  expect(call).toMatchObject({ settled: true, error: { code: 'STORE_UNAVAILABLE', lease: 'x' } })
})

test('wait limits a call that finds the first slots held and then no answer', async () => {
  const { locks, other, clock, store } = stage()
  await other.semaphore('x', { limit: 16 }).acquire({ permits: 16 })
  store.rule('acquire', async forward => {
    await new Promise<void>(resolve => clock.after(100, resolve))
    return forward()
  })
  const call = follow(locks.semaphore('x', { limit: 16 }).acquire({ wait: 250 }))
  await clock.advance(350)
  expect(call).toMatchObject({ settled: true, error: { code: 'ACQUIRE_TIMEOUT', holder: { owner: 'other' } } })
})

test('a call that has waited for long at the gate tolerates an outage of nearly one ttl', async () => {
  const { locks, other, clock, store } = stage()
  const semaphore = other.semaphore('x', { limit: 1 })
  const holder = await semaphore.acquire()
  const ahead = follow(semaphore.acquire())
  const call = follow(locks.semaphore('x', { limit: 1 }).acquire())
  await clock.advance(60_000)
  store.ruleAll(lost)
  await clock.advance(9_000)
  expect(call.settled).toBe(false)
  store.restore('acquire', 'renew', 'annotate', 'release', 'watch')
  await holder.release()
  await clock.advance(100)
  await ahead.value?.release()
  await clock.advance(5_000)
  call.value?.assertHeld()
  expect(call.value).toBeDefined()
})
