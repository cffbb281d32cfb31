import { expect, test } from 'vitest'
import { follow, lost, type Rule } from '../../../../test/scripted-store.ts'
import type { Lease } from '../../../contract/lease.ts'
import { type Threads, threads } from './threads.ts'

/** Fails if the lease is ever believed longer than the server keeps it. */
async function watch({ lease, clock, atServer }: Threads, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 25) {
    const { remaining } = lease
    if (remaining > 0) expect(await atServer(), `at ${clock.now()}`).toBeGreaterThan(remaining)
    await clock.advance(25)
  }
}

/** Loses the first renewal of the worker, which is sent at 2626. */
async function loseFirst({ store, clock }: Threads): Promise<void> {
  let count = 0
  const rule: Rule = forward => (++count === 1 ? new Promise(() => {}) : forward())
  store.rule('renew', rule)
  while (count === 0) await clock.advance(25)
}

/** Extends until it succeeds or the lease is lost. */
async function insist(lease: Lease, ttl: number): Promise<number> {
  for (;;) {
    try {
      return await lease.extend(ttl)
    } catch (error) {
      if (!(error as { retryable: boolean }).retryable) return 0
    }
  }
}

test('S1: a shorter extension that waits in the worker is not sent after the renewals were stopped', async () => {
  const both = await threads(9_000)
  const { clock, lease, store } = both
  await loseFirst(both)
  await clock.advance(1_300)
  const extension = follow(lease.extend(2_000))
  await clock.advance(700)
  expect(extension.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  lease.stopRenewing()
  await watch(both, 10_000)
  expect(store.count('renew')).toBe(2)
  expect(await lease.ended).toBe('lost')
})

test('S1: nor after a longer one of the main thread, even if the worker receives the stop late', async () => {
  for (const isHung of [false, true]) {
    const both = await threads(9_000)
    const { clock, lease, store } = both
    await loseFirst(both)
    const shorter = follow(lease.extend(2_000))
    await clock.advance(1)
    const resume = isHung ? both.hang() : () => {}
    lease.stopRenewing()
    const longer = follow(insist(lease, 9_000))
    await watch(both, 6_000)
    resume()
    await watch(both, 3_000)
    expect(shorter.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(longer.settled).toBe(true)
    expect(store.claim?.ttl).toBe(9_000)
  }
})

test('an extension that was not sent when the renewals were stopped can be tried again', async () => {
  const { clock, lease, store } = await threads(9_000)
  const extension = follow(lease.extend(20_000))
  lease.stopRenewing()
  await clock.advance(2)
  expect(extension.error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(store.count('renew')).toBe(0)
  const again = follow(lease.extend(20_000))
  await clock.advance(5_000)
  expect(again.value).toBe(20_000 - 202)
})

test('S1: a ttl that the main thread gave up and the store granted is not taken back after the stop', async () => {
  const both = await threads(9_000)
  const { clock, lease, store } = both
  const answer = store.holdReplies('renew')
  const extension = follow(lease.extend(60_000))
  await clock.advance(3_000.2) // the main thread has given up, and its message is on the way
  expect(extension.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  answer()
  store.restore('renew')
  await clock.advance(0)
  lease.stopRenewing()
  await watch(both, 10_000)
})

test('S1: a longer extension waits for a renewal of the ttl before, which a worker left that ended or hangs', async () => {
  for (const end of ['killed', 'hung'] as const) {
    const both = await threads(9_000)
    const { clock, lease, store } = both
    let arrive: () => unknown = () => {}
    store.rule('renew', forward => {
      arrive = forward
      return new Promise(() => {})
    })
    await clock.advance(2_625)
    const shorter = follow(lease.extend(2_000))
    await clock.advance(10)
    store.restore('renew')
    if (end === 'killed') both.kill()
    else {
      both.hang()
      lease.stopRenewing()
    }
    const longer = follow(insist(lease, 30_000))
    for (const ms of [700, 700, 700, 700]) {
      await clock.advance(ms)
      if (!longer.settled) void lease.extend().catch(() => {}) // it must not run out meanwhile
    }
    expect([shorter.settled, longer.settled]).toEqual([true, false])
    await arrive() // within its limit of 3 s
    await watch(both, 12_000)
    expect(longer.value).toBeGreaterThan(20_000)
  }
})

test('a release does not wait for an extension that waits in the worker', async () => {
  const both = await threads(9_000)
  const { clock, lease, store, other } = both
  store.rule('renew', () => Promise.reject(new Error('connect ECONNREFUSED')))
  await clock.advance(2_700)
  store.rule('renew', lost)
  const extension = follow(lease.extend(20_000))
  await clock.advance(5)
  const release = follow(lease.release())
  await clock.advance(5)
  expect([extension.settled, release.value]).toEqual([true, 'released'])
  expect(await other.tryAcquire('a')).toBeDefined()
})
