import { expect, onTestFinished, test } from 'vitest'
import { follow, lost, refused, stage } from '../../../test/scripted-store.ts'
import { subscribe } from '../../contract/events.ts'
import type { Claim } from '../../contract/store.ts'
import { heldNames } from './test/held-names.ts'

test('two sets whose names are in opposite order are both served', async () => {
  const { locks, other, clock } = stage()
  const blocker = await other.acquire('b')
  const work = () => new Promise<void>(resolve => clock.after(1_000, resolve))
  const one = follow(locks.all(['a', 'b']).using(work))
  const two = follow(other.all(['b', 'a']).using(work))
  await clock.advance(100)
  await blocker.release()
  await clock.advance(3_000)
  expect([one.settled, two.settled]).toEqual([true, true])
  expect(clock.pending).toBe(0)
})

test('while it waits for a name it holds only names that come before', async () => {
  const { locks, other, clock } = stage()
  const blocker = await other.acquire('b')
  const waiting = follow(locks.all(['c', 'b', 'a']).acquire())
  await clock.advance(0)
  expect(await heldNames(other)).toEqual(['a', 'b'])
  await other.using('c', async () => {}) // c was released after the first try
  await blocker.release()
  await clock.advance(0)
  expect(waiting.value?.names).toEqual(['c', 'b', 'a'])
  waiting.value?.assertHeld()
})

test('the ordered phase uses new claims', async () => {
  const { locks, other, clock, store } = stage()
  const blocker = await other.acquire('a')
  const ids: string[] = []
  const { acquire } = store
  store.acquire = (claim: Claim, signal) => {
    if (claim.name === 'b') ids.push(claim.id)
    return acquire.call(store, claim, signal)
  }
  const waiting = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(0)
  await blocker.release()
  await clock.advance(0)
  expect(waiting.value).toBeDefined()
  expect(ids).toHaveLength(2)
  expect(new Set(ids).size).toBe(2)
})

test('a lease that is lost while another is awaited: all are released, and the call begins anew within wait', async () => {
  const { locks, other, clock } = stage({ ttl: 3_000 })
  const blocker = await other.acquire('b', { ttl: 3_000 })
  const waiting = follow(locks.all(['a', 'b']).acquire({ wait: 60_000 }))
  await clock.advance(0)
  const first = (await other.inspect('a')).holder?.token as bigint
  await other.break('a')
  const thief = await other.acquire('a', { ttl: 3_000 })
  await clock.advance(1_000) // the next renewal reports the loss
  expect(await other.inspect('b')).toMatchObject({ waiters: [] })
  expect((await other.inspect('a')).waiters).toHaveLength(1)
  await thief.release()
  await blocker.release()
  await clock.advance(100)
  const set = waiting.value
  set?.assertHeld()
  expect(set?.leases[0]?.token).toBeGreaterThan(first)
  await set?.release()
  expect(clock.pending).toBe(0)
})

test('a loss that comes with the end of the wait is a timeout that names it', async () => {
  const { locks, other, clock } = stage({ ttl: 3_000 })
  await other.acquire('b', { ttl: 3_000 })
  const waiting = follow(locks.all(['a', 'b']).acquire({ wait: 5_000 }))
  await clock.advance(4_500)
  await other.break('a')
  await other.acquire('a', { ttl: 3_000 })
  await clock.advance(1_000)
  expect(waiting.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT', lease: expect.stringMatching(/^[ab]$/) })
})

test('tryAcquire does not wait, and leaves nothing behind', async () => {
  const { locks, other, clock } = stage()
  const blocker = await other.acquire('b')
  expect(await locks.all(['a', 'b']).tryAcquire()).toBeUndefined()
  await clock.advance(0)
  expect(await heldNames(other)).toEqual(['b'])
  await blocker.release()
  expect((await locks.all(['a', 'b']).tryAcquire())?.names).toEqual(['a', 'b'])
})

test('of several tries at the same moment, one succeeds', async () => {
  const { locks, other } = stage()
  for (const [first, second] of [
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
    [
      ['a', 'b', 'c'],
      ['c', 'b'],
    ],
  ] as const) {
    const sets = await Promise.all([locks.all(first).tryAcquire(), other.all(second).tryAcquire()])
    expect(sets.filter(set => set)).toHaveLength(1)
    for (const set of sets) await set?.release()
  }
})

test('a timeout names what was busy, with its holder, and leaves no claim', async () => {
  const { locks, other, clock } = stage()
  await other.acquire('b', { note: 'backup' })
  const waiting = follow(locks.all(['a', 'b', 'c']).acquire({ wait: 300 }))
  await clock.advance(300)
  expect(waiting.error).toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    lease: 'b',
    holder: { name: 'b', owner: 'other', note: 'backup' },
    message: expect.stringMatching(/^the 3 leases were not acquired within 300 ms: "b" is held by other, for another/),
  })
  const once = follow(locks.all(['b', 'c']).acquire({ wait: 0 }))
  await clock.advance(0)
  expect(once.error).toMatchObject({
    message: expect.stringMatching(/^the 2 leases were not acquired together: "b" is/),
  })
  expect(await heldNames(other)).toEqual(['b'])
  expect((await other.inspect('b')).waiters).toEqual([])
})

test('an abort while it waits rejects at once with the reason, and leaves nothing', async () => {
  const { locks, other, clock } = stage()
  await other.acquire('b')
  const stop = new AbortController()
  const waiting = follow(locks.all(['a', 'b']).acquire({ signal: stop.signal }))
  await clock.advance(1_000)
  const reason = new Error('no longer needed')
  stop.abort(reason)
  await clock.advance(0)
  expect(waiting.error).toBe(reason)
  expect(await heldNames(other)).toEqual(['b'])
  expect((await other.inspect('b')).waiters).toEqual([])
  await expect(locks.all(['x', 'y']).acquire({ signal: stop.signal })).rejects.toBe(reason)
  expect(await heldNames(other)).toEqual(['b'])
})

test('an abort while the fixed terms begin rejects at once too', async () => {
  const { locks, other, clock, store } = stage()
  const blocker = await other.acquire('b')
  const controller = new AbortController()
  const call = follow(locks.all(['a', 'b']).acquire({ heartbeat: false, signal: controller.signal }))
  await clock.advance(0)
  store.rule('renew', lost)
  await blocker.release()
  await clock.advance(100)
  expect([call.settled, await heldNames(other)]).toEqual([false, ['a', 'b']])
  controller.abort('stop')
  await clock.advance(0)
  expect(call).toMatchObject({ settled: true, error: 'stop' })
  await clock.advance(5_000)
  expect(await heldNames(other)).toEqual([])
})

test('close ends a wait and what it holds, and aborts the signals of sets', async () => {
  const { locks, other, clock } = stage()
  const blocker = await other.acquire('b')
  const held = await locks.all(['x', 'y']).acquire()
  const waiting = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(0)
  const closing = follow(locks.close({ grace: 1_000 }))
  await clock.advance(500)
  expect(waiting.error).toMatchObject({ code: 'CLOSED' })
  expect(held.signal.reason).toMatchObject({ code: 'CLOSED' })
  held.assertHeld() // for the grace
  expect(await heldNames(other)).toEqual(['b', 'x', 'y'])
  await held.release()
  await clock.advance(0)
  expect(closing.settled).toBe(true)
  expect(() => locks.all(['a'])).not.toThrow()
  await expect(locks.all(['a']).acquire()).rejects.toMatchObject({ code: 'CLOSED' })
  await blocker.release()
})

test('maxHold counts from when all are held', async () => {
  const { locks, other, clock } = stage({ maxHold: 2_000 })
  const blocker = await other.acquire('b')
  const waiting = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(5_000)
  await blocker.release()
  await clock.advance(0)
  const set = waiting.value
  expect(set?.remaining).toBe(2_000)
  await clock.advance(1_999)
  set?.assertHeld()
  await clock.advance(1)
  expect(set?.signal.reason).toMatchObject({ code: 'MAX_HOLD' })
  expect(await set?.release()).toBe('lost')
  expect(await heldNames(other)).toEqual([])
})

test.each([
  [2_000, 'nothing is left behind'],
  [Number.POSITIVE_INFINITY, 'it begins anew, and does not wait for itself'],
])('if maxHold ends before a call with wait %s does, %s', async wait => {
  const { locks, other, clock, store } = stage()
  const blocker = await other.acquire('b')
  const call = follow(locks.all(['a', 'b']).acquire({ heartbeat: false, maxHold: 100, wait }))
  await clock.advance(1_900)
  store.rule('renew', async forward => {
    const answer = await forward()
    await new Promise<void>(resolve => clock.after(150, resolve))
    return answer
  })
  await blocker.release()
  await clock.advance(100)
  store.restore('renew')
  await clock.advance(100)
  if (wait === 2_000) expect(call.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT', cause: { code: 'MAX_HOLD' } })
  else expect(call.value?.remaining).toBeGreaterThan(0)
  expect(await heldNames(other)).toEqual(wait === 2_000 ? [] : ['a', 'b'])
})

test('after maxHold the names stay held while the work runs, until their ttl', async () => {
  const { locks, other, clock } = stage({ maxHold: 2_000 })
  const { promise: end, resolve } = Promise.withResolvers<void>()
  const using = follow(locks.all(['a', 'b']).using(() => end))
  const losses: string[] = []
  onTestFinished(subscribe('lease_lost', ({ lease, reason }) => losses.push(`${lease.name} ${reason}`)))
  const set = await locks.all(['c', 'd', 'e']).acquire()
  await set.leases[0]?.release() // by itself
  await clock.advance(5_000)
  expect(set.signal.reason).toMatchObject({ code: 'MAX_HOLD' })
  await expect(set.extend()).rejects.toMatchObject({ code: 'MAX_HOLD' })
  expect(() => set.leases[0]?.assertHeld()).toThrow('the lease "c" was released')
  expect(() => set.leases[1]?.assertHeld()).toThrow('the lease "d" was held for 2000 ms, its maxHold')
  expect(await heldNames(other)).toEqual(['a', 'b', 'd', 'e'])
  resolve()
  await clock.advance(0)
  expect(using.error).toMatchObject({ code: 'MAX_HOLD' })
  expect(await heldNames(other)).toEqual(['d', 'e'])
  await clock.advance(5_000)
  expect(await heldNames(other)).toEqual([])
  expect(losses.sort()).toEqual(['a max_hold', 'b max_hold', 'd max_hold', 'e max_hold'])
})

test('a fixed term begins when all are held, and no lease is renewed after that', async () => {
  const { locks, other, clock, store } = stage()
  const blocker = await other.acquire('b', { ttl: 60_000 })
  const waiting = follow(locks.all(['a', 'b', 'c']).acquire({ heartbeat: false, ttl: 3_000 }))
  await clock.advance(0)
  const { holder } = await other.inspect('a')
  await clock.advance(10_500)
  await blocker.release()
  await clock.advance(0)
  const set = waiting.value
  expect(set?.remaining).toBe(3_000 - 32) // the margin
  expect(set?.leases[0]?.token).toBe(holder?.token) // it was renewed while b was awaited
  const renewals = store.count('renew')
  await clock.advance(2_967)
  set?.assertHeld()
  expect(store.count('renew')).toBe(renewals)
  await clock.advance(1)
  expect(set?.signal.aborted).toBe(true)
})

test('a store that fails in the first try is tried again, and one that stays away rejects', async () => {
  const { locks, clock, store, other } = stage({ ttl: 3_000 })
  store.rule('acquire', refused)
  const waiting = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(0)
  expect(waiting.settled).toBe(false)
  store.restore('acquire')
  await clock.advance(1_000)
  await waiting.value?.release()
  store.rule('acquire', refused)
  const failing = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(6_000)
  expect(failing.error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(locks.all(['a', 'b']).tryAcquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  store.restore('acquire')
  await clock.advance(10_000)
  expect(await heldNames(other)).toEqual([])
  expect(clock.pending).toBe(0)
})

test('one name is acquired as by acquire: one request, and the same error', async () => {
  const { locks, other, store } = stage()
  const set = await locks.all(['a']).acquire()
  expect(store.count('acquire')).toBe(1)
  const [first, second] = await Promise.allSettled([
    other.acquire('a', { wait: 0 }),
    other.all(['a']).acquire({ wait: 0 }),
  ])
  expect((second as PromiseRejectedResult).reason.message).toBe((first as PromiseRejectedResult).reason.message)
  await set.release()
})

test('a loss at the moment of the last grant: nothing of it is kept, and the call begins anew', async () => {
  const { locks, other, clock, store } = stage()
  const blocker = await other.acquire('b')
  const waiting = follow(locks.all(['a', 'b']).acquire())
  await clock.advance(0)
  const [loseFirst] = [...store.notifyLoss.values()]
  let grants = 0
  const stop = subscribe('lease_acquired', ({ lease }) => {
    if (lease.name !== 'b' || grants++ > 0) return
    loseFirst?.()
  })
  await blocker.release()
  await clock.advance(0)
  stop()
  expect(grants).toBe(2)
  const set = waiting.value
  set?.assertHeld()
  expect(await set?.release()).toBe('released')
  await clock.advance(0)
  expect(await heldNames(other)).toEqual([])
  expect(clock.pending).toBe(0)
})

test('an abort together with a loss ends the call', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('b')
  const stop = new AbortController()
  const waiting = follow(locks.all(['a', 'b']).acquire({ signal: stop.signal }))
  await clock.advance(0)
  for (const lose of store.notifyLoss.values()) lose()
  const reason = new Error('no longer needed')
  stop.abort(reason)
  await clock.advance(0)
  expect(waiting.error).toBe(reason)
  expect(await heldNames(other)).toEqual(['b'])
})

test('locks that are closed at the moment of the grant reject the call', async () => {
  const { locks, other, clock } = stage()
  const stop = subscribe('lease_acquired', () => void locks.close({ grace: 1_000 }))
  const waiting = follow(locks.all(['a']).acquire())
  await clock.advance(0)
  stop()
  expect(waiting.error).toMatchObject({ code: 'CLOSED' })
  expect(await heldNames(other)).toEqual([])
})
