import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { follow, stage } from '../../test/scripted-store.ts'
import { claimOf, signal } from '../../test/support.ts'
import { subscribe } from '../contract/events.ts'
import type { LeaseEvents } from '../contract/lease-events.ts'
import type { Busy, Claim, Grant } from '../contract/store.ts'
import { createLocks, type Locks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'

const warnings = vi.spyOn(process, 'emitWarning')
let reported: LeaseEvents['self_wait'][]
let stop: () => void

beforeEach(() => {
  warnings.mockReset().mockImplementation(() => {})
  reported = []
  stop = subscribe('self_wait', event => reported.push(event))
})
afterEach(() => stop())

test('F4: a call that waits inside the work that holds its name is reported after one ttl, once', async () => {
  const { locks, clock } = stage({ owner: 'me' })
  const work = follow(locks.using('f4', () => locks.using('f4', async () => 'never')))
  await clock.advance(9_000)
  expect(reported).toEqual([])
  await clock.advance(2_000)
  const lease = expect.objectContaining({ name: 'f4', owner: 'me' })
  expect(reported).toEqual([{ name: 'f4', owner: 'me', lease, waited: 10_000 }])
  const since = new Date(clock.wall() - 11_000).toISOString()
  const message =
    `acquire has waited 10000 ms for "f4", held by another call of these locks (me) since ${since}; ` +
    'if this call is inside it, leases are not re-entrant: pass the lease to it; --trace-warnings shows the call'
  expect(warnings.mock.calls).toEqual([[message, { type: 'HoldfastWarning', code: 'HOLDFAST_SELF_WAIT' }]])
  await clock.advance(60_000)
  expect(reported).toHaveLength(1)
  expect(warnings).toHaveBeenCalledOnce()
  expect(work.settled).toBe(false)
  const closing = locks.close({ grace: 0 })
  await clock.advance(10_000)
  await closing
  expect(work.error).toMatchObject({ code: 'CLOSED' })
})

test('F4: calls that share a name in turn are not reported, nor is a wait behind another process', async () => {
  const { locks, clock, server } = stage()
  const work = (): Promise<void> => new Promise(resolve => clock.after(4_000, resolve))
  const queue = Promise.all(Array.from({ length: 6 }, () => locks.using('a', work)))
  await server.acquire(claimOf('b', { ttl: 60_000 }), signal)
  await stage().other.acquire('b') // over another store
  const behind = follow(locks.acquire('b', { wait: 30_000 }))
  await clock.advance(40_000)
  await queue
  expect(behind.error).toMatchObject({ code: 'BUSY' })
  expect(reported).toEqual([])
  expect(warnings).not.toHaveBeenCalled()
})

test('a call that waits for what other locks of this process hold is reported, as after a module was loaded again', async () => {
  const store = memory()
  const [old, fresh] = ['old', 'new'].map(owner => createLocks(store, { owner, ttl: 3_000 })) as [Locks, Locks]
  const lease = await old.acquire('b')
  const behind = fresh.acquire('b')
  await until('it is reported', () => reported.length > 0)
  expect(reported).toMatchObject([{ name: 'b', owner: 'new', lease: { token: lease.token, owner: 'old' } }])
  expect(warnings.mock.calls.map(([message]) => message)).toContainEqual(
    expect.stringMatching(
      /by other locks of this process \(old\) since .*; make one Locks per process, also if modules/,
    ),
  )
  await lease.release()
  await (await behind).release()
  await Promise.all([old.close(), fresh.close()])
})

test('F4: a call that waited before these locks held the name is reported, and leaves no timer', async () => {
  const { locks, other, clock } = stage()
  const elsewhere = await other.acquire('late')
  const first = locks.acquire('late')
  const second = follow(locks.acquire('late', { wait: 60_000 }))
  await clock.advance(4_000)
  await elsewhere.release()
  await clock.advance(1_000)
  const lease = await first
  await clock.advance(8_000)
  expect(reported).toEqual([])
  await clock.advance(4_000)
  expect(reported).toMatchObject([{ name: 'late', lease: { token: lease.token } }])
  await lease.release()
  await clock.advance(1_000)
  const held = second.value
  await held?.release()
  expect(held).toBeDefined()
  expect(clock.pending).toBe(0)
})

test('F4: a listener that releases the lease ends the wait', async () => {
  const { locks, clock, store, server } = stage()
  store.rule('acquire', async forward => {
    const answer = (await forward()) as Grant | Busy
    return answer.held ? answer : { ...answer, kept: true, listens: true } // the call asks only if it is woken
  })
  using _ = { [Symbol.dispose]: subscribe('self_wait', ({ lease }) => void lease.release()) }
  await locks.acquire('cured')
  const second = follow(locks.acquire('cured'))
  const claim = store.claim as Claim
  await clock.advance(6_000)
  await server.acquire(claim, new AbortController().signal) // keeps its position
  await clock.advance(6_000)
  expect(reported).toHaveLength(1)
  expect(second.value?.name).toBe('cured')
})

test('F4: the warning has the stack of the call that waits', async () => {
  const { locks, clock } = stage()
  let stack = ''
  warnings.mockImplementation(() => {
    stack = new Error('here').stack ?? ''
  })
  async function innerCall(): Promise<void> {
    await locks.using('f4 stack', async () => {})
  }
  const work = follow(locks.using('f4 stack', innerCall))
  await clock.advance(11_000)
  expect(stack).toContain('innerCall')
  expect(work.settled).toBe(false)
})
