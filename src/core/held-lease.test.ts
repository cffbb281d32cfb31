import { inspect } from 'node:util'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { follow, lost, type Rule, refused, stage, unanswered } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import { subscribe } from '../contract/events.ts'
import { requestLimit } from '../contract/time.ts'
import { StoreLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { VirtualClock } from '../testing/clock.ts'

test('a renewal for NaN ms, or without a ttl, ends the lease rather than holding it for ever', async () => {
  for (const ttl of [Number.NaN, undefined]) {
    const { locks, clock, store } = stage()
    const lease = await locks.acquire('a')
    store.rule('renew', async () => ({ held: true, token: lease.token, ttl }))
    await clock.advance(5_000)
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  }
})

test('a heartbeat that is late past the deadline does not renew what is lost', async () => {
  const { locks, other, clock, store } = stage()
  const lease = await locks.acquire('a')
  await clock.block(9_900) // the store would still renew it: the margin is the holder's alone
  expect(lease.signal.aborted).toBe(true)
  expect(store.count('renew')).toBe(0)
  await clock.advance(100)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('the end of a fixed term that the machine slept through is noticed within a minute', async () => {
  let slept = 0
  class Clock extends VirtualClock {
    override now(): number {
      return super.now() + slept
    }
  }
  const clock = new Clock()
  const locks = new StoreLocks(memory({ clock }), {}, { clock, random: () => 0.5 })
  const lease = await locks.acquire('a', { ttl: 28_800_000, heartbeat: false })
  const ended = follow(lease.ended)
  slept = 30_000_000
  await clock.advance(60_000)
  expect(ended.value).toBe('lost')
})

test('a lease still held after close is no longer renewed, even if it is extended to another ttl', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  const closing = locks.close({ grace: 0 })
  await clock.advance(0)
  await closing
  await lease.extend(6_000)
  await clock.advance(6_000)
  expect(store.count('renew')).toBe(1)
  expect(() => lease.assertHeld()).toThrow('has no heartbeat')
})

test('a loss reported by the store ends the lease at once, and once, but not a released or lost one', async () => {
  const { locks, store } = stage()
  const seen: string[] = []
  const stop = subscribe('lease_lost', ({ lease }) => seen.push(lease.name))
  const [lost, released] = [await locks.acquire('lost'), await locks.acquire('released')]
  const [tellLost, tellReleased] = [...store.notifyLoss.values()]
  await released.release()
  expect(store.notifyLoss.size).toBe(1)
  tellReleased?.()
  expect(released.signal.aborted).toBe(false)
  tellLost?.()
  expect(lost.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  expect(store.notifyLoss.size).toBe(0)
  tellLost?.()
  expect(seen).toEqual(['lost'])
  expect(store.count('renew')).toBe(0)
  stop()
})

test('the holder is notified before another can hold, however the store is cut off', async () => {
  const rules: Rule[] = [lost, unanswered, refused]
  const cuts = fc.record({
    ttl: fc.oneof(fc.integer({ min: 10, max: 200 }), fc.integer({ min: 200, max: 100_000 })),
    after: fc.double({ min: 0, max: 3, noNaN: true }),
    rule: fc.constantFrom(...rules),
    lateBy: fc.double({ min: 0, max: 0.95, noNaN: true }),
  })
  await fc.assert(
    fc.asyncProperty(cuts, async ({ ttl, after, rule, lateBy }) => {
      const { locks, other, clock, store } = stage({ ttl })
      store.rule('acquire', async forward => {
        const answer = await forward()
        await new Promise<void>(resolve => clock.after(requestLimit(ttl) * lateBy, resolve))
        return answer
      })
      const acquiring = follow(locks.acquire('a'))
      await clock.advance(requestLimit(ttl) * lateBy)
      const lease = acquiring.value
      if (!lease) throw new Error('not acquired')
      const { signal } = lease
      let told = Number.POSITIVE_INFINITY
      signal.addEventListener('abort', () => {
        told = clock.now()
      })
      await clock.advance(ttl * after)
      store.ruleAll(rule)
      let passed = Number.POSITIVE_INFINITY
      void other.acquire('a').then(() => {
        passed = clock.now()
      })
      await clock.advance(ttl * 3)
      expect(told).toBeLessThan(passed)
      expect(passed).toBeLessThan(Number.POSITIVE_INFINITY)
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
      expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', leaseName: 'a', retryable: false })
    }),
    { numRuns: 60 },
  )
})

test('the first check after the event loop was blocked is right, whichever it is', async () => {
  const looks = {
    assertHeld: (lease: { assertHeld(): void }) => expect(() => lease.assertHeld()).toThrow('not renewed in time'),
    signal: ({ signal }: { signal: AbortSignal }) => expect(signal.aborted).toBe(true),
    remaining: ({ remaining }: { remaining: number }) => expect(remaining).toBe(0),
  }
  for (const look of Object.values(looks)) {
    const { locks, clock } = stage()
    const lease = await locks.acquire('a')
    const blocked = clock.block(20_000)
    look(lease)
    await blocked
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  }
})

test('a block shorter than the remaining time loses nothing', async () => {
  const { locks, clock } = stage()
  const lease = await locks.acquire('a')
  await clock.block(9_800)
  lease.assertHeld()
  await clock.advance(60_000)
  lease.assertHeld()
})

test('the remaining time counts from before the request was sent, minus 1 % and 2 ms', async () => {
  const { locks, clock, store } = stage()
  const answer = store.holdReplies('acquire')
  const acquiring = locks.acquire('a')
  await clock.advance(500)
  answer()
  expect((await acquiring).remaining).toBe(10_000 - 500 - 102)
})

test('a ttl that the server made longer counts in full', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000, heartbeat: false })
  const longer: Rule = async forward => ({ ...((await forward()) as object), ttl: 2_000 })
  store.rule('acquire', longer)
  store.rule('renew', longer)
  const lease = await locks.acquire('a')
  expect(lease.remaining).toBe(1_978)
  await clock.advance(500)
  expect(await lease.extend()).toBe(1_978)
  await clock.advance(1_977)
  lease.assertHeld()
  await clock.advance(1)
  expect(lease.signal.aborted).toBe(true)
})

test('a lease that was broken is lost at the next renewal, and the breaker outranks it', async () => {
  const { locks, other, clock } = stage()
  const lease = await locks.acquire('a')
  const token = await other.break('a')
  expect(token).toBeGreaterThan(lease.token)
  lease.assertHeld()
  await clock.advance(3_333)
  expect(lease.signal.reason).toMatchObject({
    code: 'LEASE_LOST',
    message: 'the lease "a" is no longer held, because it expired at the store or was broken',
  })
})

test('a renewal that answers with another token ends the lease', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.rule('renew', async () => ({ held: true, token: lease.token + 1n, ttl: 10_000 }))
  await clock.advance(3_333)
  expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
})

test('an error of a renewal is no loss, even if it is permanent', async () => {
  const { locks, clock, store } = stage()
  const lease = await locks.acquire('a')
  store.rule('renew', () => Promise.reject(new LeaseError('INVALID_ARGUMENT', 'no')))
  await clock.advance(9_000)
  lease.assertHeld()
  store.restore('renew')
  await clock.advance(60_000)
  lease.assertHeld()
})

test('a renewal that is answered after the deadline revives nothing', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  let told = 0
  const stop = subscribe('lease_lost', () => {
    told += 1
  })
  store.rule('renew', refused)
  await clock.advance(8_000)
  const answer = store.holdReplies('renew')
  await clock.advance(1_000)
  answer()
  await clock.advance(0)
  stop()
  expect(told).toBe(1)
  expect(() => lease.assertHeld()).toThrow('not renewed in time')
  expect(clock.pending).toBe(0)
})

test('a renewal that reports the loss after the deadline is no second loss', async () => {
  const { locks, clock, store, other } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const { signal } = lease
  let told = 0
  const stop = subscribe('lease_lost', () => {
    told += 1
  })
  store.rule('renew', refused)
  await clock.advance(8_000)
  const deliver = store.holdRequests('renew')
  await clock.advance(1_000)
  await other.acquire('a')
  const { reason } = signal
  deliver()
  await clock.advance(0)
  stop()
  expect(told).toBe(1)
  expect(() => lease.assertHeld()).toThrow(reason)
})

test('the end of a shortened ttl is reported without a check', async () => {
  const { locks, clock } = stage({ heartbeat: false })
  const lease = await locks.acquire('a', { ttl: 60_000 })
  const { signal } = lease
  await lease.extend(1_000)
  await clock.advance(987)
  expect(signal.aborted).toBe(false)
  await clock.advance(1)
  expect(signal.aborted).toBe(true)
})

test('maxHold ends a lease that is renewed, at its time and with its own code', async () => {
  const { locks, clock, other } = stage({ ttl: 3_000, maxHold: 10_000 })
  const lease = await locks.acquire('a')
  await clock.advance(9_000)
  expect(lease.remaining).toBe(1_000)
  await clock.advance(999)
  lease.assertHeld()
  await clock.advance(1)
  expect(lease.signal.reason).toMatchObject({
    code: 'MAX_HOLD',
    message: 'the lease "a" was held for 10000 ms, its maxHold',
  })
  await expect(lease.extend()).rejects.toMatchObject({ code: 'MAX_HOLD' })
  const wait = follow(other.acquire('a'))
  await clock.advance(3_000)
  expect(wait.settled).toBe(true)
  expect(clock.pending).toBeGreaterThan(0) // the other's
})

test('a loss is one error, thrown by every check', async () => {
  const { locks, clock } = stage({ heartbeat: false })
  const lease = await locks.acquire('a')
  await clock.advance(10_000)
  const { reason } = lease.signal
  expect(reason).toBeInstanceOf(LeaseError)
  expect(() => lease.assertHeld()).toThrow(reason as LeaseError)
  await expect(lease.extend()).rejects.toBe(reason)
  expect(await lease.release()).toBe('lost')
  expect(lease.remaining).toBe(0)
})

test('a lease can be written as JSON, with its token as decimal digits', async () => {
  const { locks } = stage({ owner: 'me' })
  const lease = await locks.acquire('a')
  const written = { name: 'a', token: String(lease.token), owner: 'me', ttl: 10_000, remaining: 9_898 }
  expect(JSON.parse(JSON.stringify({ lease }))).toEqual({ lease: written })
  await lease.release()
  expect(JSON.parse(JSON.stringify(lease))).toEqual({ ...written, remaining: 0 })
})

test('F12: a copy by spread has name, token, owner and ttl, and nothing that acts on the lease', async () => {
  const { locks } = stage({ owner: 'me' })
  const lease = await locks.acquire('a')
  await lease.extend(20_000)
  // oxlint-disable-next-line typescript/no-misused-spread -- that is what is tested
  const copy = { ...lease }
  expect(copy).toEqual({ name: 'a', token: lease.token, owner: 'me', ttl: 20_000 })
  // @ts-expect-error to TypeScript it cannot be released either
  expect(copy.release).toBeUndefined()
  // @ts-expect-error nor asked what remains
  expect(copy.remaining).toBeUndefined()
})

test('a printed lease shows its state, in whole milliseconds', async () => {
  const { locks } = stage({ ttl: 1_000 })
  const lease = await locks.acquire('a', { owner: 'me' })
  expect(inspect(lease, { breakLength: 200 })).toBe(
    `{ name: 'a', token: '${lease.token}', owner: 'me', ttl: 1000, remaining: 988 }`,
  )
})

test('the verbs of a lease can be taken apart', async () => {
  const { locks, other } = stage()
  const lease = await locks.acquire('a')
  const { annotate, assertHeld, extend, release, stopRenewing } = lease
  await annotate('half')
  expect((await other.inspect('a')).holders[0]?.note).toBe('half')
  expect(await extend(20_000)).toBeGreaterThan(19_000)
  expect(lease.ttl).toBe(20_000)
  assertHeld()
  stopRenewing()
  expect(await release()).toBe('released')
  expect(assertHeld).toThrow('was released')
  expect(Object.keys(lease)).toEqual(['name', 'token', 'owner', 'ttl'])
  const set = await locks.all(['a', 'b']).acquire()
  const { release: releaseAll } = set
  expect(await releaseAll()).toBe('released')
})

test('a spy on a verb of a lease calls the verb', async () => {
  const { locks } = stage()
  const lease = await locks.acquire('a')
  const verbs = ['annotate', 'assertHeld', 'extend', 'release', 'stopRenewing'] as const
  const spies = verbs.map(verb => vi.spyOn(lease, verb))
  lease.assertHeld()
  await lease.extend()
  await lease.annotate('half')
  lease.stopRenewing()
  expect(await lease.release()).toBe('released')
  for (const spy of spies) expect(spy).toHaveBeenCalledTimes(1)
})
