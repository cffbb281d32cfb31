import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { collect, droppedWarnings, renewedAndCollected } from '../../test/garbage.ts'
import { follow, lost, refused, stage } from '../../test/scripted-store.ts'
import type { Lease } from '../contract/lease.ts'
import { createLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'

const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
afterEach(() => void warn.mockClear())

test('P5: a lease without renewals is held until its deadline, and no longer', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  await clock.advance(5_000)
  expect(store.count('renew')).toBe(1)
  lease.stopRenewing()
  const { remaining } = lease
  expect(remaining).toBeGreaterThan(5_000)
  await clock.advance(remaining - 1)
  lease.assertHeld()
  await clock.advance(1)
  expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  expect([await lease.ended, store.count('renew')]).toEqual(['lost', 1])
  await clock.advance(1_000)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('P5: a lease without renewals can be extended and released', async () => {
  const { locks, other, clock } = stage()
  const lease = await locks.acquire('a')
  lease.stopRenewing()
  await clock.advance(5_000)
  expect(await lease.extend()).toBeGreaterThan(9_000)
  expect(await lease.release()).toBe('released')
  lease.stopRenewing()
  expect(await other.tryAcquire('a')).toBeDefined()
  expect(clock.pending).toBe(1) // the heartbeat of the other's lease
})

test('F13: ended says how the lease ended, whenever it is read, and never rejects', async () => {
  const { locks, other, clock, store } = stage()
  const leases = await Promise.all(['released', 'broken', 'expired', 'unknown'].map(name => locks.acquire(name)))
  const [released, broken, expired, unknown] = leases as [Lease, Lease, Lease, Lease]
  const ends = leases.map(({ ended }) => follow(ended))
  await released.release()
  await other.break('broken')
  await clock.advance(5_000)
  expired.stopRenewing()
  await clock.advance(10_000)
  store.ruleAll(lost)
  void unknown.release()
  await clock.advance(2_000)
  expect(ends.map(({ value }) => value)).toEqual(['released', 'lost', 'lost', 'unknown'])
  expect(broken.ended).toBe(broken.ended)
  expect(await broken.ended).toBe('lost')
})

test('S5: close waits 1 s for withdrawals, whatever the grace', async () => {
  for (const rule of [lost, refused]) {
    const { locks, clock, store } = stage()
    const lease = await locks.acquire('a')
    store.ruleAll(rule)
    const releasing = follow(lease.release())
    const closing = follow(locks.close({ grace: 0 }))
    await clock.advance(999)
    expect([releasing.settled, closing.settled]).toEqual([false, false])
    await clock.advance(1)
    expect(closing.settled).toBe(true)
  }
})

test('S5: close waits for the withdrawal of a lease that was lost and released', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.ruleAll(refused)
  await clock.advance(10_000)
  store.restore('release')
  const answer = store.holdReplies('release')
  expect(await lease.release()).toBe('lost')
  const closing = follow(locks.close())
  await clock.advance(0)
  expect([closing.settled, store.count('close')]).toEqual([false, 0])
  answer()
  await clock.advance(0)
  expect([closing.settled, store.count('close')]).toEqual([true, 1])
})

test('S5: tryAcquire over an unresponsive store takes at most 2 s, as do inspect, list and break', async () => {
  const { locks, clock, store } = stage({ ttl: 60_000 })
  store.ruleAll(lost)
  store.rule('inspect', () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }))
  const calls = [
    locks.tryAcquire('a'),
    locks.acquire('a', { wait: 0 }),
    locks.inspect('a'),
    locks.list()[Symbol.asyncIterator]().next(),
    locks.break('a'),
  ].map(call => follow<unknown>(call))
  await clock.advance(1_999)
  expect(calls.map(({ settled }) => settled)).toEqual(calls.map(() => false))
  await clock.advance(1)
  expect(calls.map(({ settled }) => settled)).toEqual(calls.map(() => true))
})

test('F11: no warning while the program refers to the lease, awaits its end, or lets it run out', async () => {
  const locks = createLocks(memory(), { ttl: 2_000 })
  const kept = await locks.acquire('kept')
  void (await locks.acquire('awaited')).ended.then(() => {})
  ;(await locks.acquire('stopped')).stopRenewing()
  await renewedAndCollected(locks, 2)
  expect(droppedWarnings(warn)).toEqual([])
  await kept.release()
  await locks.close({ grace: 0 })
})

test('F11: a lease that is renewed without a reference causes one warning, and is still renewed', async () => {
  const locks = createLocks(memory(), { ttl: 2_000 })
  const names = ['one', 'two']
  for (const name of names) await locks.acquire(name)
  await renewedAndCollected(locks, names.length)
  await until('the warning', () => {
    collect()
    return droppedWarnings(warn).length > 0
  })
  expect(droppedWarnings(warn)).toEqual([
    [
      expect.stringMatching(/^the lease "(one|two)" is still renewed, but/),
      expect.objectContaining({ code: 'HOLDFAST_LEASE_DROPPED' }),
    ],
  ])
  for (const name of names) expect((await locks.inspect(name)).holders[0]).toBeDefined()
  await locks.close({ grace: 0 })
})
