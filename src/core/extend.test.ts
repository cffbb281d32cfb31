import { expect, test } from 'vitest'
import { follow, lost, refused, type Stage, stage, unanswered } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { Claim } from '../contract/store.ts'

import { StoreLocks } from '../create-locks.ts'
import type { Renewer } from './renewer.ts'
import { ThreadRenewals, type WorkerLink } from './thread/thread-renewals.ts'

test('extend renews at once, and resolves to the remaining time', async () => {
  const { locks, clock, store } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  await clock.advance(9_000)
  expect(lease.remaining).toBe(898)
  expect(await lease.extend()).toBe(9_898)
  expect(store.count('renew')).toBe(1)
  await clock.advance(9_897)
  lease.assertHeld()
  await clock.advance(1)
  expect(lease.signal.aborted).toBe(true)
})

test('a ttl given to extend applies to later renewals too', async () => {
  const { locks, clock, store, other } = stage()
  const lease = await locks.acquire('a')
  expect(await lease.extend(60_000)).toBe(59_398)
  expect(lease.ttl).toBe(60_000)
  await clock.advance(17_499)
  expect(store.count('renew')).toBe(1)
  await clock.advance(1)
  expect(store.count('renew')).toBe(2)
  expect((await other.inspect('a')).holders[0]?.remaining).toBe(60_000)
  expect(await lease.extend(1_000)).toBe(988)
  await clock.advance(10_000)
  expect(store.count('renew')).toBeGreaterThan(30)
  lease.assertHeld()
  await lease.release()
  expect(clock.pending).toBe(0)
})

test('a shorter ttl counts from its request, even without an answer', async () => {
  for (const rule of [lost, unanswered, refused]) {
    const { locks, other, clock, store } = stage({ heartbeat: false })
    const lease = await locks.acquire('a', { ttl: 60_000 })
    store.rule('renew', rule)
    const extension = follow(lease.extend(3_000))
    await clock.advance(1_000)
    expect(extension.error).toMatchObject({ retryable: true })
    lease.assertHeld()
    const wait = follow(other.acquire('a'))
    await clock.advance(1_967)
    lease.assertHeld()
    await clock.advance(1)
    expect(lease.signal.aborted).toBe(true)
    expect(wait.settled).toBe(false)
  }
})

test('a longer ttl counts only once it is granted', async () => {
  const { locks, clock, store } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  store.rule('renew', lost)
  const extension = follow(lease.extend(60_000))
  await clock.advance(5_000)
  expect(extension.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(lease.remaining).toBe(4_898)
  expect(lease.ttl).toBe(10_000)
})

test('an extension for longer that fails leaves the heartbeat as it was', async () => {
  for (const rule of [lost, unanswered, refused]) {
    const { locks, clock, store } = stage({ ttl: 300 })
    const lease = await locks.acquire('a')
    await clock.advance(50)
    store.rule('renew', rule)
    const extension = follow(lease.extend(600_000))
    await clock.advance(100)
    expect(extension.error).toMatchObject({ retryable: true })
    store.restore('renew')
    await clock.advance(60_000)
    lease.assertHeld()
    expect(lease.ttl).toBe(300)
    await lease.release()
    expect(clock.pending).toBe(0)
  }
})

test('extend with the store down rejects, and the lease is held until its deadline', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.ruleAll(refused)
  await expect(lease.extend()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  lease.assertHeld()
  await clock.advance(9_897)
  lease.assertHeld()
  await clock.advance(1)
  expect(lease.signal.aborted).toBe(true)
})

test('extend of a lease that was broken rejects LEASE_LOST', async () => {
  const { locks, other } = stage()
  const lease = await locks.acquire('a')
  await other.break('a')
  await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect(lease.signal.aborted).toBe(true)
})

test('an extension to another ttl never overlaps another renewal of its lease', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  let underWay = 0
  let most = 0
  store.rule('renew', async forward => {
    underWay += 1
    most = Math.max(most, underWay)
    await new Promise<void>(resolve => clock.after(100, resolve))
    underWay -= 1
    return forward()
  })
  await clock.advance(2_850) // a heartbeat comes at 2,917 while the first is under way
  const extensions = [15_000, 20_000, 30_000].map(ttl => follow(lease.extend(ttl)))
  await clock.advance(300)
  expect(extensions.map(({ value }) => value)).toEqual([14_748, 19_698, 29_598])
  expect(most).toBe(1)
  expect(store.count('renew')).toBe(3)
  await clock.advance(60_000)
  lease.assertHeld()
  expect(lease.ttl).toBe(30_000)
})

test('an extension without a ttl keeps a longer one that is on its way', async () => {
  const { locks, clock } = stage()
  const lease = await locks.acquire('a')
  const extensions = Promise.all([lease.extend(60_000), lease.extend()])
  await clock.advance(0)
  await extensions
  expect(lease.ttl).toBe(60_000)
  expect(lease.remaining).toBeGreaterThan(59_000)
})

test('the heartbeat renews and retries beside an extension that is not answered', async () => {
  for (const ttl of [10_000, 20_000]) {
    const { locks, clock, store } = stage()
    const lease = await locks.acquire('a')
    store.rule('renew', lost)
    await clock.advance(2_950)
    const extension = follow(lease.extend(ttl))
    await clock.advance(4_500) // the store serves again after three quarters of the ttl
    store.restore('renew')
    await clock.advance(5_000)
    expect(extension.error).toMatchObject({ retryable: true })
    lease.assertHeld()
    expect(lease.ttl).toBe(10_000)
  }
})

test('an extension waits for an unanswered renewal, which could set its shorter ttl', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', lost)
  await clock.advance(2_625 + 1_350)
  expect(store.count('renew')).toBe(2)
  const extension = follow(lease.extend(30_000))
  store.restore('renew')
  await clock.advance(2_999) // until the store refuses the second as late; meanwhile the heartbeat has renewed
  expect([extension.settled, store.count('renew')]).toEqual([false, 3])
  await clock.advance(1)
  expect(extension.value).toBe(29_698)
  await clock.advance(60_000)
  lease.assertHeld()
})

test('a longer extension waits until a failed renewal can no longer arrive, and another does not', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  store.rule('renew', refused)
  await expect(lease.extend()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  store.restore('renew')
  const longer = follow(lease.extend(30_000))
  await clock.advance(2_999)
  expect(longer.settled).toBe(false)
  expect(await lease.extend(9_000)).toBe(8_908)
  await clock.advance(1)
  expect(longer.value).toBe(29_698)
  store.rule('renew', refused)
  await expect(lease.extend()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  const never = follow(lease.extend(60_000))
  await lease.release()
  await clock.advance(0)
  expect(never.error).toMatchObject({ code: 'CLOSED' })
})

test('an extension during a release rejects CLOSED, and the release continues', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  const answer = store.holdReplies('renew')
  const under = follow(lease.extend())
  const queued = follow(lease.extend(20_000))
  await clock.advance(0)
  const release = follow(lease.release())
  const late = follow(lease.extend())
  await clock.advance(0)
  answer()
  await clock.advance(0)
  for (const extension of [under, queued, late]) expect(extension.error).toMatchObject({ code: 'CLOSED' })
  expect(release).toMatchObject({ settled: true, error: undefined })
  expect(store.count('renew')).toBe(1)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('extend cannot hold beyond maxHold', async () => {
  const { locks, clock } = stage({ maxHold: 12_000 })
  const lease = await locks.acquire('a')
  await clock.advance(5_000)
  expect(await lease.extend(60_000)).toBe(7_000)
  await clock.advance(7_000)
  expect(lease.signal.reason).toMatchObject({ code: 'MAX_HOLD' })
})

test.each([0, 9, -5, 10.5, Number.NaN, 2_147_483_648, '10s', null])('extend refuses the ttl %o', async ttl => {
  const { locks, store } = stage()
  const lease = await locks.acquire('a')
  await expect(lease.extend(ttl as number)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('ttl must be a whole number of milliseconds from 10 to 2147483647, not '),
  })
  expect(store.count('renew')).toBe(0)
  expect(lease.ttl).toBe(10_000)
  await expect(lease.extend(undefined)).resolves.toBe(9_898)
})

test('S1: a renewal that fails while extend waits for it cannot end a longer ttl when it arrives late', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  let arrive: () => unknown = () => {}
  const { promise: failure, reject } = Promise.withResolvers<never>()
  store.rule('renew', forward => {
    arrive = forward
    return failure
  })
  await clock.advance(3_333)
  expect(store.count('renew')).toBe(1)
  const extension = follow(lease.extend(60_000))
  store.restore('renew')
  reject(new LeaseError('OUTCOME_UNKNOWN', 'the connection was reset'))
  await clock.advance(1_000)
  await arrive()
  await clock.advance(12_000)
  expect(extension.settled).toBe(true)
  lease.assertHeld()
  expect(await other.tryAcquire('a')).toBeUndefined()
})

/** A lease of ten seconds that this worker renews. */
async function byThread(worker: WorkerLink): Promise<Stage & { lease: Lease; renewals: ThreadRenewals }> {
  const set = stage()
  const { clock, store } = set
  let renewals: ThreadRenewals | undefined
  const hold: Renewer['hold'] = (...lease) => {
    renewals = new ThreadRenewals(worker, ...lease)
    return renewals.lease
  }
  const thread: Renewer = { ready: async () => {}, hold, close: async () => {} }
  const locks = new StoreLocks(store, { heartbeat: 'thread' }, { clock, random: () => 0.5 }, async () => thread)
  const lease = await locks.acquire('a')
  if (!renewals) throw new Error('the thread was not asked')
  return { ...set, lease, renewals }
}

test.each([
  ['were stopped', ({ lease }: ThreadRenewals) => lease.stopRenewing()],
  [
    'have failed',
    (renewals: ThreadRenewals) => renewals.takeOver(new LeaseError('STORE_UNAVAILABLE', 'the thread has ended')),
  ],
])('S1: nor can a renewal of the heartbeat thread, after those %s', async (_, end) => {
  const { clock, store, other, lease, renewals } = await byThread({
    blocked: 0,
    send: () => false,
    extend: async () => undefined,
  })
  const late = { ...(store.claim as Claim), token: lease.token }
  end(renewals)
  const extension = follow(lease.extend(60_000))
  await clock.advance(1_000)
  await store.renew(late, new AbortController().signal)
  await clock.advance(12_000)
  expect(extension.settled).toBe(true)
  lease.assertHeld()
  expect(await other.tryAcquire('a')).toBeUndefined()
})

test('when the heartbeat thread ends during an extension, the main thread renews at once', async () => {
  const { promise: answer, resolve } = Promise.withResolvers<LeaseError>()
  const { clock, store, lease, renewals } = await byThread({ blocked: 0, send: () => true, extend: () => answer })
  await clock.advance(8_000)
  const extension = follow(lease.extend(60_000))
  await clock.advance(0)
  const error = new LeaseError('STORE_UNAVAILABLE', 'the thread has ended')
  resolve(error)
  renewals.takeOver(error)
  await clock.advance(0)
  expect(extension.error).toBe(error)
  expect(store.count('renew')).toBe(1)
})

test('the end of a session of this store is no loss after the heartbeat thread has moved the lease and ended', async () => {
  const { clock, store, lease, renewals } = await byThread({
    blocked: 0,
    send: () => true,
    extend: async () => undefined,
  })
  const tell = [...store.notifyLoss.values()]
  renewals.takeOver(new LeaseError('STORE_UNAVAILABLE', 'the thread has ended'))
  for (const lost of tell) lost()
  await clock.advance(30_000)
  lease.assertHeld()
})
