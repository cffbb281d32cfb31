import { expect, test, vi } from 'vitest'
import { follow, stage } from '../test/scripted-store.ts'

test('derived locks have their own defaults, and what these do not name from the locks before', async () => {
  const { locks } = stage({ ttl: 3_000, note: 'base', owner: 'me' })
  const derived = locks.with({ ttl: 60_000, wait: undefined }).with({ note: 'derived' })
  const lease = await derived.acquire('a')
  expect([lease.ttl, lease.owner]).toEqual([60_000, 'me'])
  expect((await locks.inspect('a')).holders[0]?.note).toBe('derived')
  expect((await locks.acquire('b')).ttl).toBe(3_000)
  expect((await locks.with({ owner: 'another' }).acquire('c')).owner).toBe('another')
})

test('derived locks have the owner of their locks also if that was drawn', async () => {
  const { locks } = stage()
  const [one, two] = [await locks.acquire('a'), await locks.with({}).acquire('b')]
  expect(one.owner).toBe(two.owner)
})

test('the store of derived locks is closed with the last of them, whichever that is', async () => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
  ]) {
    const { locks, store, clock } = stage()
    const derived = locks.with({ ttl: 60_000 })
    const family = [locks, derived, derived.with({})]
    for (const [closed, index] of order.entries()) {
      expect(store.count('close')).toBe(0)
      const each = family[index]
      await (await each?.acquire(`a${closed}`))?.release()
      await Promise.all([each?.close(), each?.close()])
      await expect(each?.acquire('a')).rejects.toMatchObject({ code: 'CLOSED' })
      expect(() => each?.with({})).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    }
    expect([store.count('close'), clock.pending]).toEqual([1, 0])
  }
})

test('closing derived locks ends their leases and calls, and none of the others', async () => {
  const { locks, other, clock } = stage()
  const derived = locks.with({})
  const held = await other.acquire('busy')
  const lease = await locks.acquire('a')
  const own = await derived.acquire('b')
  const wait = follow(locks.acquire('busy'))
  const ownWait = follow(derived.acquire('busy'))
  await clock.advance(0)
  const closing = follow(derived.close({ release: true }))
  await clock.advance(0)
  expect([closing.settled, ownWait.error]).toMatchObject([true, { code: 'CLOSED' }])
  expect(own.signal.reason).toMatchObject({ code: 'CLOSED' })
  lease.assertHeld()
  expect(lease.signal.aborted).toBe(false)
  await held.release()
  await clock.advance(0)
  expect(wait.value?.name).toBe('busy')
})

test('a lease of derived locks is renewed after the others were closed', async () => {
  const { locks, clock } = stage()
  const derived = locks.with({})
  const lease = await derived.acquire('a')
  await locks.close()
  await clock.advance(60_000)
  lease.assertHeld()
  expect(derived.advice().heartbeats).toBeGreaterThan(0)
})

test('derived locks that wait for a lease of the others report that they wait for themselves', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const { locks, clock } = stage()
  await locks.acquire('self', { ttl: 1_000 })
  const derived = locks.with({ ttl: 1_000 })
  await expect(derived.acquire('self', { wait: 0 })).rejects.toThrow(
    /held by another call of these locks .* if this call is inside it, leases are not re-entrant/,
  )
  const wait = follow(derived.acquire('self'))
  await clock.advance(5_000)
  expect(wait.settled).toBe(false)
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/held by another call of these locks .* pass the lease to it/),
    expect.objectContaining({ code: 'HOLDFAST_SELF_WAIT' }),
  )
  warn.mockRestore()
})

test('calls of derived locks that wait for a name count together', async () => {
  const { locks, other, clock } = stage({ maxWaiters: 1 })
  await other.acquire('a')
  void locks.acquire('a').catch(() => {})
  await clock.advance(0)
  await expect(locks.with({}).acquire('a')).rejects.toMatchObject({ code: 'TOO_MANY_WAITERS' })
})

test('derived locks refuse what locks refuse', () => {
  const { locks } = stage()
  expect(() => locks.with({ tll: 1 } as never)).toThrow('with has no option "tll"')
  expect(() => locks.with({ ttl: 0 })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(() => locks.with({ heartbeat: 'thread' })).toThrow("heartbeat: 'thread' needs a store")
  expect(() => locks.with(undefined as never)).toThrow('the options of with must be an object')
})
