import { expect, test } from 'vitest'
import { follow, lost, refused, stage, unanswered } from '../../test/scripted-store.ts'
import type { Lease } from '../contract/lease.ts'

test('a note is visible to all clients, and survives renewals', async () => {
  const { locks, other, clock } = stage({ note: 'begins' })
  const lease = await locks.acquire('a')
  const noteOf = async (): Promise<string | undefined> => (await other.inspect('a')).holders[0]?.note
  expect(await noteOf()).toBe('begins')
  await lease.annotate('40 % done')
  expect(await noteOf()).toBe('40 % done')
  await clock.advance(60_000)
  await lease.extend(20_000)
  expect(await noteOf()).toBe('40 % done')
  await lease.annotate('')
  expect(await noteOf()).toBe('')
  await lease.release()
  expect(clock.pending).toBe(0)
})

test('notes are written one after the other', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  const open = store.holdRequests('annotate')
  const both = follow(Promise.all([lease.annotate('first'), lease.annotate('second')]))
  await clock.advance(0)
  expect(store.count('annotate')).toBe(1)
  open()
  await clock.advance(0)
  expect(both.settled).toBe(true)
  expect((await other.inspect('a')).holders[0]?.note).toBe('second')
})

test('after an unanswered note, the next is written once the first can no longer arrive', async () => {
  for (const rule of [lost, unanswered, refused]) {
    const { locks, other, clock, store } = stage({ ttl: 6_000 })
    const lease = await locks.acquire('a')
    store.rule('annotate', rule)
    const first = follow(lease.annotate('first'))
    await clock.advance(1_000)
    store.restore('annotate')
    const second = follow(lease.annotate('second'))
    await clock.advance(999)
    expect(store.count('annotate')).toBe(1)
    await clock.advance(1)
    expect(first.error).toMatchObject({ retryable: true })
    expect(second).toMatchObject({ settled: true, error: undefined })
    expect((await other.inspect('a')).holders[0]?.note).toBe('second')
    lease.assertHeld()
  }
})

test.each<[string, (lease: Lease) => Promise<unknown>]>([
  ['a note', (lease: Lease) => lease.annotate('late')],
  ['a longer ttl', (lease: Lease) => lease.extend(120_000)],
])('%s is refused within the limit of a request while renewals fail again and again', async (_, ask) => {
  const { locks, clock, store } = stage({ ttl: 60_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', refused)
  await clock.advance(20_000)
  const asked = follow(ask(lease))
  const failures = store.count('renew')
  await clock.advance(5_000)
  expect(store.count('renew')).toBeGreaterThan(failures + 5)
  expect(asked.error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  store.restore('renew')
  await clock.advance(10_000)
  await ask(lease)
  lease.assertHeld()
})

test('a note notifies the holder of a lease that is gone', async () => {
  const { locks, other, clock } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  await other.break('a')
  const next = await other.acquire('a', { note: 'mine' })
  await expect(lease.annotate('late')).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect(lease.signal.aborted).toBe(true)
  expect((await other.inspect('a')).holders[0]?.note).toBe('mine')
  await next.release()
  const brief = await locks.acquire('a')
  await clock.advance(10_000)
  await expect(brief.annotate('late')).rejects.toMatchObject({ code: 'LEASE_LOST' })
})

test('a note that cannot be written is refused at once', async () => {
  const { locks, store } = stage()
  const lease = await locks.acquire('a')
  for (const note of ['x'.repeat(256), 'a\nb', 5 as never, undefined as never])
    await expect(lease.annotate(note)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await lease.release()
  await expect(lease.annotate('late')).rejects.toMatchObject({ code: 'CLOSED' })
  expect(store.count('annotate')).toBe(0)
})

test('a note in flight at the release is no loss', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  const open = store.holdRequests('annotate')
  const note = follow(lease.annotate('last'))
  await clock.advance(0)
  await lease.release()
  open()
  await clock.advance(0)
  expect(note.error).toMatchObject({ code: 'CLOSED' })
  expect(lease.signal.aborted).toBe(false)
})
