/** How long calls take while the store does not answer. docs/operations/time-limits.md has the limits. */
import { expect, test } from 'vitest'
import { follow, lost, type Stage, stage } from '../../test/scripted-store.ts'
import type { AcquireOptions } from '../core/options.ts'
import type { LeaseSet } from './lease-set.ts'

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
  expect(call).toMatchObject({ settled: true, error: { code: 'BUSY', leaseName: 'x' } })
  expect(String(call.error)).not.toContain('\u241f')
})

test('the last extensions of names without a heartbeat take no longer than wait, and maxHold counts after them', async () => {
  const { locks, clock, store } = stage({ heartbeat: false })
  const before = await locks.acquire('b')
  const call = follow(locks.all(['a', 'b']).acquire({ wait: 3_000, maxHold: 1_000 }))
  await clock.advance(500)
  store.rule('renew', lost)
  await before.release()
  await clock.advance(1_500)
  expect(call.settled).toBe(false)
  await clock.advance(1_000)
  expect(call).toMatchObject({ settled: true, error: undefined })
  await clock.advance(999)
  const leases = call.value as LeaseSet
  expect(leases.signal.aborted).toBe(false)
  await clock.advance(2)
  expect(leases.signal.reason).toMatchObject({ code: 'MAX_HOLD' })
})

test('a try of several names without a heartbeat gives each its whole term', async () => {
  const { locks, clock, store } = stage({ heartbeat: false, ttl: 6_000 })
  store.rule('acquire', async forward => {
    const answer = await forward()
    await new Promise<void>(resolve => clock.after(900, resolve))
    return answer
  })
  const call = follow(locks.all(['a', 'b', 'c']).tryAcquire())
  await clock.advance(2_700)
  expect((call.value as LeaseSet).leases.map(({ remaining }) => remaining)).toEqual([5_938, 5_938, 5_038])
})
