import { expect, test } from 'vitest'
import { follow, stage } from '../test/scripted-store.ts'
import { subscribe } from './events.ts'
import type { Lease } from './lease.ts'

test('a wait that close ends is withdrawn before the store is closed', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(0)
  const mend = store.holdReplies('release')
  const closing = follow(locks.close())
  await clock.advance(0)
  expect(wait.error).toMatchObject({ code: 'CLOSED' })
  expect(store.calls).not.toContain('close')
  mend()
  await clock.advance(0)
  expect(store.calls.slice(-2)).toEqual(['release', 'close'])
  expect(closing.settled).toBe(true)
  expect((await other.inspect('a')).waiters).toEqual([])
})

test('a grant that arrives in the turn of close is withdrawn before the store is closed', async () => {
  const { locks, other, clock, store } = stage()
  const answer = store.holdReplies('acquire')
  const wait = follow(locks.acquire('a'))
  await clock.advance(0)
  answer()
  const closing = follow(locks.close())
  await clock.advance(0)
  expect(wait.error).toMatchObject({ code: 'CLOSED' })
  expect(closing.settled).toBe(true)
  expect(store.calls.slice(-2)).toEqual(['release', 'close'])
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('close in a listener of lease_acquired ends the lease that is being given', async () => {
  const { locks, clock } = stage()
  let closing: Promise<void> | undefined
  const stop = subscribe('lease_acquired', () => {
    closing = locks.close({ grace: 1_000 })
  })
  const lease = await locks.acquire('a')
  stop()
  expect(lease.signal.reason).toMatchObject({ code: 'CLOSED' })
  await clock.advance(1_000)
  await closing
  await clock.advance(10_000)
  expect(() => lease.assertHeld()).toThrow('not renewed in time')
  expect(clock.pending).toBe(0)
})

test('a listener of lease_acquired that blocks past the deadline finds the lease lost', async () => {
  const { locks, clock } = stage()
  let code: unknown
  const stop = subscribe('lease_acquired', ({ lease }) => {
    void clock.block(10_000)
    code = (lease.signal.reason as { code: string }).code
  })
  await locks.acquire('a')
  stop()
  expect(code).toBe('LEASE_LOST')
  const closing = follow(locks.close())
  await clock.advance(0)
  expect(closing.settled).toBe(true)
})

test('a listener of an abort by close cannot acquire anew, and its own close is the same', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  let again: Promise<Lease> | undefined
  let closing: Promise<void> | undefined
  lease.signal.addEventListener('abort', () => {
    again = locks.acquire('b')
    closing = locks.close()
  })
  const outer = locks.close({ grace: 1_000 })
  await expect(again).rejects.toMatchObject({ code: 'CLOSED' })
  await lease.release()
  await outer
  await closing
  expect(store.count('close')).toBe(1)
  expect(clock.pending).toBe(0)
})
