import { afterAll, beforeEach, expect, test } from 'vitest'
import { follow, lost, refused, type Stage, stage, unanswered } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import { subscribe } from '../contract/events.ts'
import { List } from '../contract/list.ts'
import type { Claim } from '../contract/store.ts'
import { Heartbeat } from './heartbeat.ts'
import type { HeldLease } from './held-lease.ts'
import { withdraw } from './withdraw.ts'

const claim: Claim = { name: 'a', id: '1', owner: 'me', ttl: 9_000, note: '', queue: true }
const { signal } = new AbortController()

function core({ clock, store }: Stage) {
  const random = (): number => 0.5
  return {
    clock,
    random,
    store,
    heartbeat: new Heartbeat(clock, random),
    leases: new List<HeldLease>(),
    onEnd: () => {},
    inBackground: () => {},
  }
}

/** What withdrawals failed with in this test. */
const failed: LeaseError[] = []
beforeEach(() => void failed.splice(0))
const stop = subscribe('release_failed', ({ error }) => failed.push(error))
afterAll(stop)

async function held(): Promise<Stage> {
  const staged = stage()
  await staged.server.acquire(claim, signal)
  return staged
}

test('a claim that holds is released by one request', async () => {
  const staged = await held()
  expect(await withdraw(core(staged), claim, false)).toBe('released')
  expect(staged.store.calls).toEqual(['release'])
  expect(await withdraw(core(staged), claim, false)).toBe('gone')
})

test('a claim whose repeated release is answered with gone is withdrawn', async () => {
  const staged = await held()
  staged.store.rule('release', unanswered)
  const withdrawal = follow(withdraw(core(staged), claim, false))
  await staged.clock.advance(1_399)
  staged.store.restore('release')
  await staged.clock.advance(100)
  expect(withdrawal.value).toBe('gone')
  expect(staged.clock.pending).toBe(0)
})

test('a request that went unanswered is refused when it arrives after the withdrawal', async () => {
  const staged = stage()
  expect(await withdraw(core(staged), claim, true)).toBe('gone')
  expect(await staged.server.acquire(claim, signal)).toMatchObject({ held: false })
  expect(await staged.other.tryAcquire('a')).toBeDefined()
})

test('an unanswered request that arrives between two withdrawals is withdrawn too', async () => {
  const staged = await held()
  let releases = 0
  staged.store.rule('release', async forward => {
    const answer = await forward()
    releases += 1
    if (releases === 1) await staged.server.acquire(claim, signal) // the copy that was under way
    return answer
  })
  expect(await withdraw(core(staged), claim, true)).toBe('released')
  expect(releases).toBe(3)
  expect(await staged.server.acquire(claim, signal)).toMatchObject({ held: false })
})

test('a store that always says released is not asked for ever', async () => {
  const staged = await held()
  staged.store.rule('release', async () => 'released')
  expect(await withdraw(core(staged), claim, true)).toBe('released')
  expect(staged.store.count('release')).toBe(4)
})

test.each([
  [60_000, 5_000],
  [9_000, 5_000],
  [900, 900],
])('with a ttl of %d ms a store that does not answer is given up after %d ms at most', async (ttl, limit) => {
  const staged = stage()
  staged.store.ruleAll(lost)
  const withdrawal = follow(withdraw(core(staged), { ...claim, ttl }, true))
  await staged.clock.advance(limit)
  expect(withdrawal.value).toBe('unknown')
  expect(failed).toMatchObject([{ code: 'OUTCOME_UNKNOWN' }])
  expect(staged.clock.pending).toBe(0)
})

test('a store that refuses is asked ever less often, and its error is reported', async () => {
  const staged = stage()
  staged.store.ruleAll(refused)
  const withdrawal = follow(withdraw(core(staged), claim, false))
  await staged.clock.advance(5_000)
  expect(withdrawal.value).toBe('unknown')
  expect(failed).toMatchObject([{ code: 'STORE_UNAVAILABLE' }])
  expect(staged.store.count('release')).toBeGreaterThan(5)
  expect(staged.store.count('release')).toBeLessThan(15)
})

test('a withdrawal whose time passed while the event loop was blocked tries once more, briefly', async () => {
  for (const rule of [lost, undefined]) {
    const staged = await held()
    staged.store.rule('release', refused)
    const withdrawal = follow(withdraw(core(staged), claim, false))
    await staged.clock.advance(0)
    if (rule) staged.store.rule('release', rule)
    else staged.store.restore('release')
    await staged.clock.block(8_000)
    await staged.clock.advance(50)
    expect(staged.store.count('release')).toBe(2)
    if (rule)
      expect(failed).toMatchObject([
        { message: 'the store did not answer within 50 ms: check its address, and that it runs' },
      ])
    else expect(withdrawal.value).toBe('released')
  }
})

test('a permanent error ends the withdrawal at once', async () => {
  const staged = await held()
  const error = new LeaseError('DRIVER_MISSING', 'npm install ioredis')
  staged.store.rule('release', () => Promise.reject(error))
  expect(await withdraw(core(staged), claim, false)).toBe('unknown')
  expect(failed).toEqual([error])
  expect(staged.store.count('release')).toBe(1)
})
