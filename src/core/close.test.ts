import { expect, test, vi } from 'vitest'
import { follow, lost, refused, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import type { Locks } from '../create-locks.ts'

test('a wait that close ends is withdrawn before the store is closed', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(0)
  const mend = store.holdReplies('release')
  const closing = follow(locks.close())
  await clock.advance(0)
  expect(wait.error).toMatchObject({ code: 'CLOSED', message: expect.stringMatching(/this call waited: await it/) })
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

test.each<[string, (locks: Locks) => Promise<unknown>]>([
  ['lock', locks => locks.acquire('a')],
  ['permit', locks => locks.semaphore('a', { limit: 2 }).acquire()],
])('close in a listener of acquire_began ends that call of a %s', async (_, acquire) => {
  const { locks, store } = stage()
  const stop = subscribe('acquire_began', () => void locks.close())
  await expect(acquire(locks)).rejects.toMatchObject({ code: 'CLOSED' })
  stop()
  expect(store.count('acquire')).toBe(0)
})

test('close in a listener of lease_acquired ends that lease', async () => {
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
  expect(() => lease.assertHeld()).toThrow('has no heartbeat')
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

test('a listener of an abort by close cannot acquire, and its own close joins the first', async () => {
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

test('close waits for work within the grace, then releases, then closes the store', async () => {
  const { locks, other, clock, store } = stage()
  const job = follow(
    locks.using('a', async ({ signal }) => {
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      await new Promise<void>(resolve => clock.after(2_000, resolve))
      return signal.reason
    }),
  )
  await clock.advance(0)
  const closing = follow(locks.close())
  await clock.advance(1_999)
  expect([job.settled, closing.settled]).toEqual([false, false])
  await clock.advance(1)
  expect(job.value).toMatchObject({ code: 'CLOSED', message: 'these locks were closed while "a" was held' })
  expect(closing.settled).toBe(true)
  expect(store.calls.slice(-2)).toEqual(['release', 'close'])
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('work that continues after the grace keeps its lease until its ttl ends, and no longer', async () => {
  const { locks, other, clock, store } = stage()
  const work = Promise.withResolvers<string>()
  const leases: Lease[] = []
  const job = follow(
    locks.using('a', lease => {
      leases.push(lease)
      return work.promise
    }),
  )
  await clock.advance(0)
  const closing = follow(locks.close({ grace: 4_000 }))
  await clock.advance(4_000)
  expect(closing.settled).toBe(true)
  const renewals = store.count('renew')
  const next = follow(other.acquire('a'))
  await clock.advance(5_000)
  for (const lease of leases) lease.assertHeld()
  await clock.advance(10_000)
  expect(store.count('renew')).toBe(renewals)
  expect(next.settled).toBe(true)
  for (const lease of leases) expect(() => lease.assertHeld()).toThrow('has no heartbeat')
  work.resolve('late')
  await clock.advance(0)
  expect(job.error).toMatchObject({ code: 'LEASE_LOST', result: 'late' })
})

test('work whose lease was lost is still awaited', async () => {
  const { locks, other, clock } = stage()
  const work = Promise.withResolvers<string>()
  const job = follow(locks.using('a', () => work.promise))
  await clock.advance(0)
  await other.break('a')
  await clock.advance(3_333)
  const closing = follow(locks.close({ grace: 60_000 }))
  await clock.advance(30_000)
  expect(closing.settled).toBe(false)
  work.resolve('done')
  await clock.advance(0)
  expect([job.settled, closing.settled]).toEqual([true, true])
  expect(clock.pending).toBe(0)
})

test('close waits until leases are released', async () => {
  const { locks, clock } = stage()
  const leases = await Promise.all(['a', 'b', 'c'].map(name => locks.acquire(name)))
  const closing = follow(locks.close())
  await clock.advance(100)
  for (const lease of leases) {
    expect(closing.settled).toBe(false)
    expect(lease.signal.reason).toMatchObject({ code: 'CLOSED' })
    lease.assertHeld()
    await lease.release()
  }
  await clock.advance(0)
  expect(closing.settled).toBe(true)
  expect(clock.pending).toBe(0)
})

test('close names the leases that were acquired and not released after a second, and not those of work', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const { locks, clock } = stage()
  const forgotten = await locks.acquire('forgotten')
  const set = await locks.all(['of a set']).acquire()
  const job = follow(locks.using('at work', async () => new Promise<void>(resolve => clock.after(2_000, resolve))))
  await clock.advance(0)
  const closing = follow(locks.close())
  await clock.advance(999)
  expect(warn).not.toHaveBeenCalled()
  await clock.advance(1)
  const what = (name: string): unknown[] => [
    `close() found the lease "${name}", which was acquired and not released: call release() first, or ` +
      'close({ release: true })',
    { type: 'HoldfastWarning', code: 'HOLDFAST_NOT_RELEASED' },
  ]
  expect(warn.mock.calls).toEqual([what('forgotten'), what('of a set')])
  await clock.advance(1_000)
  await forgotten.release()
  await set.release()
  await clock.advance(0)
  expect([job.settled, closing.settled, clock.pending]).toEqual([true, true, 0])
  warn.mockRestore()
})

test('close that gives up within its first second names what was not released, which is still held, unless grace is 0', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  for (const grace of [0, 300]) {
    const { locks, clock } = stage({ ttl: 1_000 })
    const lease = await locks.acquire(`until ${grace}`)
    const closing = follow(locks.close({ grace }))
    await clock.advance(grace)
    expect([closing.settled, lease.signal.aborted]).toEqual([true, true])
    expect(() => lease.assertHeld(), 'nobody else can hold it yet').not.toThrow()
    await clock.advance(1_000)
    expect(() => lease.assertHeld()).toThrow('has no heartbeat')
  }
  expect(warn.mock.calls).toMatchObject([
    [expect.stringMatching(/"until 300", which was acquired and not released/), { code: 'HOLDFAST_NOT_RELEASED' }],
  ])
  warn.mockRestore()
})

test('close with release releases at once what was acquired, and waits for work', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const { locks, other, clock } = stage()
  const lease = await locks.acquire('a')
  const set = await locks.all(['b', 'c']).acquire()
  const permit = await locks.semaphore('d', { limit: 2 }).acquire()
  const job = follow(locks.using('e', async () => new Promise<void>(resolve => clock.after(2_000, resolve))))
  await clock.advance(0)
  const closing = follow(locks.close({ release: true }))
  await clock.advance(0)
  expect(lease.signal.reason).toMatchObject({ code: 'CLOSED' })
  expect([await lease.ended, await set.ended, await permit.ended]).toEqual(['released', 'released', 'released'])
  expect((await Array.fromAsync(other.list())).map(({ name }) => name)).toEqual(['e'])
  expect(closing.settled).toBe(false)
  await clock.advance(2_000)
  expect([job.settled, closing.settled, clock.pending]).toEqual([true, true, 0])
  expect(warn).not.toHaveBeenCalled()
  await expect(locks.close({ release: 1 as never })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  warn.mockRestore()
})

test('close called by the work does not wait for itself for ever', async () => {
  const { locks, clock } = stage()
  const job = follow(
    locks.using('a', async () => {
      await locks.close()
      return 'closed'
    }),
  )
  await clock.advance(5_000)
  expect(job.value).toBe('closed')
})

test('after close all calls reject, and closing again has no effect', async () => {
  const { locks, store, clock } = stage()
  await Promise.all([locks.close(), locks.close({ grace: 0 }), locks[Symbol.asyncDispose]()])
  await locks.close()
  expect(store.calls).toEqual(['close'])
  const calls = [
    locks.acquire('a'),
    locks.tryAcquire('a'),
    locks.using('a', async () => 1),
    locks.inspect('a'),
    locks.break('a'),
    locks.list()[Symbol.asyncIterator]().next(),
  ]
  for (const call of calls)
    await expect(call).rejects.toMatchObject({
      code: 'CLOSED',
      message: 'these locks were closed: make new ones with createLocks',
    })
  expect(store.calls).toEqual(['close'])
  expect(clock.pending).toBe(0)
})

test.each([
  ['does not answer', lost],
  ['cannot be reached', refused],
])('close settles within the grace and 10 s when the store %s, and rejects nothing', async (_, rule) => {
  const { locks, other, clock, store } = stage()
  await other.acquire('b')
  await locks.acquire('a')
  const wait = follow(locks.acquire('b'))
  const job = follow(
    locks.using('c', ({ signal }) => new Promise(resolve => signal.addEventListener('abort', resolve))),
  )
  await clock.advance(0)
  store.ruleAll(rule)
  store.rule('close', rule)
  const closing = follow(locks.close({ grace: 1_000 }))
  await clock.advance(11_000)
  expect(closing).toMatchObject({ settled: true, error: undefined })
  expect(wait.error).toMatchObject({ code: 'CLOSED' })
  expect(job.settled).toBe(true)
})

test('close ends if the store has nothing to close, or throws', async () => {
  for (const value of [
    undefined,
    () => {
      throw new Error('no')
    },
  ]) {
    const { locks, store } = stage()
    Object.defineProperty(store, Symbol.asyncDispose, { value })
    await expect(locks.close()).resolves.toBeUndefined()
  }
})

test('close waits until the mark of a run that lost its lease is removed', async () => {
  const { locks, other, store, clock } = stage()
  let remove = (): void => {}
  store.rule('release', forward =>
    store.count('release') === 1 ? forward() : new Promise(resolve => (remove = () => resolve(forward()))),
  )
  const run = follow(locks.once('a', { within: 60_000 }, () => other.break('a')))
  await clock.advance(0)
  const closing = follow(locks.close())
  await clock.advance(500)
  expect(store.count('release')).toBe(2)
  expect(closing.settled).toBe(false)
  store.restore('release')
  remove()
  await clock.advance(500)
  expect(run.error).toMatchObject({ code: 'LEASE_LOST' })
  expect(closing.settled).toBe(true)
  expect(await other.once('a', { within: 60_000 }, async () => 1)).toEqual({ ran: true, result: 1 })
})

test('close waits for the removal of the mark of a run whose loss is only seen at the release', async () => {
  const { locks, other, store, clock } = stage()
  store.rule('release', async forward => {
    await new Promise<void>(resolve => clock.after(50, resolve))
    return forward()
  })
  const { promise, resolve: finish } = Promise.withResolvers<void>()
  const run = follow(
    locks.once('a', { within: 60_000 }, async () => {
      await other.break('a')
      await promise
    }),
  )
  await clock.advance(0)
  const closing = follow(locks.close())
  finish()
  await clock.advance(200)
  expect(run.error).toMatchObject({ code: 'LEASE_LOST' })
  expect(closing.settled).toBe(true)
  expect(store.calls.slice(-3)).toEqual(['release', 'release', 'close'])
})
