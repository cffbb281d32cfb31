import { expect, onTestFinished, test } from 'vitest'
import { follow, lost, refused, stage } from '../../../test/scripted-store.ts'
import { look } from '../../../test/support.ts'
import { subscribe } from '../../contract/events.ts'
import type { LeaseEvents } from '../../contract/lease-events.ts'
import { StoreLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { testLocks } from '../../testing/index.ts'

const random = (): number => 0.5

test('using releases, reports a loss with the result, and passes on errors of the work', async () => {
  const locks = testLocks({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  expect(await semaphore.using(async permit => permit.slot)).toBe(0)
  await expect(semaphore.using(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  const losing = semaphore.using(async ({ signal }) => {
    await locks.lose('x')
    return signal.aborted
  })
  await expect(losing).rejects.toMatchObject({ code: 'LEASE_LOST', lease: 'x', result: true })
  const stop = new AbortController()
  const aborted = semaphore.using(
    permit => new Promise((_, reject) => permit.signal.addEventListener('abort', () => reject(permit.signal.reason))),
    { signal: stop.signal },
  )
  await locks.advance(0)
  stop.abort('stop')
  await expect(aborted).rejects.toBe('stop')
  await locks.close()
})

test('close aborts the signal, waits for the work, and ends calls that wait', async () => {
  const { locks, other, clock, server } = stage()
  const semaphore = locks.semaphore('x', { limit: 1 })
  let ended = false
  const working = follow(
    semaphore.using(async permit => {
      await new Promise<void>(resolve => permit.signal.addEventListener('abort', () => clock.after(500, resolve)))
      ended = permit.remaining > 0
    }),
  )
  const waiting = follow(semaphore.acquire())
  await clock.advance(0)
  const closing = follow(locks.close())
  await clock.advance(0)
  expect(waiting.error).toMatchObject({ code: 'CLOSED' })
  expect(closing.settled).toBe(false)
  await clock.advance(500)
  expect([ended, working.settled, closing.settled]).toEqual([true, true, true])
  expect(await look(server, { prefix: '' })).toEqual([])
  await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'CLOSED' })
  await other.close()
})

test('the events of a permit are those of one lease', async () => {
  const { locks, other, clock } = stage({ ttl: 3_000 })
  const log: string[] = []
  const seen: unknown[] = []
  const names = [
    ...(['acquire_began', 'lease_acquired', 'acquire_failed', 'heartbeat', 'lease_lost'] as const),
    ...(['release_began', 'lease_released', 'release_failed', 'self_wait', 'request_failed'] as const),
  ]
  const stops = names.map(name =>
    subscribe(name, event => {
      const { lease } = event as LeaseEvents['lease_lost']
      log.push(name)
      seen.push(lease ?? (event as LeaseEvents['acquire_began']).name)
    }),
  )
  const semaphore = locks.semaphore('x', { limit: 2 })
  const permit = await semaphore.acquire()
  expect(log.splice(0)).toEqual(['acquire_began', 'lease_acquired'])
  await clock.advance(1_100)
  expect(log.splice(0)).toEqual(['heartbeat'])
  await permit.release()
  expect(log.splice(0)).toEqual(['release_began', 'lease_released'])
  expect(seen.splice(0)).toEqual(['x', permit, permit, permit, permit])
  const both = await semaphore.acquire({ permits: 2 })
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await other.break('x')
  await clock.advance(1_100)
  expect(log.splice(0).filter(name => name !== 'heartbeat')).toEqual([
    ...['acquire_began', 'lease_acquired', 'acquire_began', 'acquire_failed', 'lease_lost'],
  ])
  expect(new Set(seen)).toEqual(new Set(['x', both]))
  for (const stop of stops) stop()
})

test('extend, annotate, stopRenewing and maxHold count for all slots', async () => {
  const { locks, clock, server } = stage({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  const permit = await semaphore.acquire({ permits: 2, maxHold: 50_000 })
  expect(await permit.extend(20_000)).toBeGreaterThan(19_000)
  expect(permit.ttl).toBe(20_000)
  await permit.annotate('half')
  expect((await look(server, { prefix: '' })).map(({ note }) => note)).toEqual(['half', 'half'])
  expect(JSON.parse(JSON.stringify(permit))).toMatchObject({ name: 'x', slot: 0, slots: [{ slot: 0 }, { slot: 1 }] })
  await clock.advance(50_000)
  expect(permit.signal.reason).toMatchObject({ code: 'MAX_HOLD' })
  expect(await permit.release()).toBe('lost')
  expect(await look(server, { prefix: '' })).toEqual([])
  const fixed = await semaphore.acquire({ permits: 2, heartbeat: false })
  await clock.advance(2_900)
  fixed.assertHeld()
  await clock.advance(200)
  expect(fixed.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  await fixed.release()
})

test('the loss of several slots or names without a heartbeat has the reason term', async () => {
  const { locks, clock } = stage({ ttl: 2_000, heartbeat: false })
  const reasons: string[] = []
  onTestFinished(subscribe('lease_lost', ({ reason }) => reasons.push(reason)))
  await locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 })
  await locks.all(['y', 'z']).acquire()
  await clock.advance(2_000)
  expect(reasons).toEqual(['term', 'term', 'term'])
})

test('a store that fails: a try rejects, and a wait goes on once it works again', async () => {
  const { locks, clock, store, server } = stage({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  store.ruleAll(refused)
  await expect(semaphore.tryAcquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  const waiting = follow(semaphore.acquire())
  await clock.advance(1_000)
  store.restore('acquire', 'renew', 'annotate', 'release', 'watch', 'break')
  await clock.advance(1_000)
  expect(waiting.value).toMatchObject({ slot: 0 })
  await waiting.value?.release()
  await clock.advance(5_000)
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('a ttl that is too short is reported of the permit, not of its slot', async () => {
  const { locks, store, clock } = stage({ ttl: 3_000 })
  const heard: LeaseEvents['ttl_too_short'][] = []
  onTestFinished(subscribe('ttl_too_short', event => heard.push(event)))
  const first = await locks.acquire('x')
  const permit = await locks.semaphore('x', { limit: 2 }).acquire()
  expect(permit.slot).toBe(1)
  await first.release()
  store.rule('renew', async forward => {
    await new Promise<void>(resolve => clock.after(400, resolve)) // ten times it is more than the ttl
    return forward()
  })
  await clock.advance(200_000) // more than 100 heartbeats
  expect(heard.map(({ lease }) => lease)).toEqual([permit])
  expect(heard[0]?.lease.name).toBe('x')
  const released = permit.release() // a renewal may be under way
  await clock.advance(3_000)
  await released
})

test('two processes that try at once both get a permit if there are two', async () => {
  const clock = stage()
  const one = new StoreLocks(clock.server, {}, { clock: clock.clock, random })
  const two = new StoreLocks(clock.server, {}, { clock: clock.clock, random })
  const tries = [one, two].map(locks => follow(locks.semaphore('x', { limit: 2 }).tryAcquire()))
  await clock.clock.advance(1_000)
  expect(tries.map(({ value }) => value?.slot)).toEqual(expect.arrayContaining([0, 1]))
})

test('invalid arguments are refused', async () => {
  const locks = testLocks()
  const code = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
  for (const limit of [0, 17, 1.5, '2', undefined])
    expect(() => locks.semaphore('x', { limit: limit as number })).toThrow(code)
  expect(() => locks.semaphore('x', { limit: 17 })).toThrow(/from 1 to 16, not 17: a call that waits/)
  expect(() => locks.semaphore('', { limit: 1 })).toThrow(code)
  expect(() => locks.semaphore('x'.repeat(241), { limit: 1 })).toThrow(/at most 240 bytes/)
  expect(() => locks.semaphore('x', { limit: 1, permits: 1 } as never)).toThrow(code)
  const semaphore = locks.semaphore('x'.repeat(240), { limit: 2 })
  for (const permits of [0, 3, 1.5]) await expect(semaphore.acquire({ permits })).rejects.toEqual(code)
  await expect(semaphore.acquire({ limit: 2 } as never)).rejects.toEqual(code)
  await expect(semaphore.tryAcquire({ wait: 2 } as never)).rejects.toEqual(code)
  await expect(semaphore.using(1 as never)).rejects.toEqual(code)
  expect((await semaphore.acquire({ permits: 2 })).slots).toHaveLength(2)
  expect(await Array.fromAsync(locks.list())).toHaveLength(2)
  expect(memory().kind).toBe('memory')
})

test('a call that is aborted while the store does not answer rejects at once', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  const stop = new AbortController()
  const releases = store.holdRequests('release')
  const acquiring = follow(semaphore.acquire({ signal: stop.signal }))
  await clock.advance(100)
  expect(acquiring.settled).toBe(false) // it holds a slot, and leaves the gate
  const reason = new Error('enough')
  stop.abort(reason)
  await clock.advance(0)
  expect(acquiring.error).toBe(reason)
  releases()
  await clock.advance(5_000)
  expect(await Array.fromAsync(locks.list())).toEqual([])
})

test('a store that does not answer is asked for one ttl, although the ttl of the gate is shorter', async () => {
  const { locks, clock, store } = stage({ ttl: 20_000 })
  store.ruleAll(refused)
  const acquiring = follow(locks.semaphore('x', { limit: 2 }).acquire())
  await clock.advance(19_000)
  expect(acquiring.settled).toBe(false)
  await clock.advance(6_000)
  expect(acquiring.error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('a release that the store does not answer for long is reported when it succeeds', async () => {
  const { locks, clock, store } = stage({ ttl: 60_000 })
  const heard: string[] = []
  onTestFinished(subscribe('lease_released', ({ lease }) => heard.push(lease.name)))
  const permit = await locks.semaphore('x', { limit: 3 }).acquire({ permits: 2 })
  store.rule('release', refused)
  const release = follow(permit.release())
  await clock.advance(3_000)
  expect([release.value, heard]).toEqual(['unknown', []])
  store.restore('release')
  await clock.advance(5_000)
  expect(heard).toEqual(['x'])
})

/** Its timers stop while the machine sleeps, as those of Node do. */
class SleepingClock extends VirtualClock {
  slept = 0
  override now(): number {
    return super.now() + this.slept
  }
}

test('maxHold of a permit counts the sleep of the machine', async () => {
  const clock = new SleepingClock()
  const locks = new StoreLocks(memory({ clock }), { ttl: 14_400_000 }, { clock, random })
  const permit = await locks.semaphore('x', { limit: 2 }).acquire({ maxHold: 3_600_000 })
  const { signal } = permit
  clock.slept = 3_500_000
  await clock.advance(120_000)
  expect(signal.reason).toMatchObject({ code: 'MAX_HOLD' })
})

test('a release of unknown outcome names the lease, and not its slots', async () => {
  const { locks, clock, store } = stage()
  const failures: LeaseEvents['release_failed'][] = []
  onTestFinished(subscribe('release_failed', failure => failures.push(failure)))
  const permit = await locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 })
  store.rule('release', async forward => {
    await forward()
    throw new Error('connection closed')
  })
  const release = follow(permit.release())
  await clock.advance(0)
  store.restore('release')
  await clock.advance(1_000)
  expect(release.value).toBe('unknown')
  expect(failures.map(({ error }) => error.lease)).toEqual(['x', 'x'])
})

test('lose() of test locks ends a slot of a permit', async () => {
  const locks = testLocks()
  const semaphore = locks.semaphore('x', { limit: 3 })
  const first = await semaphore.acquire()
  const second = await semaphore.acquire()
  await first.release()
  await locks.lose('x')
  expect(second.signal.reason).toMatchObject({ code: 'LEASE_LOST', lease: 'x' })
  await expect(locks.lose('x')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('wait also holds while the store does not answer and the gate is lost', async () => {
  const { locks, other, clock, store } = stage({ ttl: 3_000 })
  await other.acquire('x')
  const waiting = follow(locks.semaphore('x', { limit: 2 }).acquire({ permits: 2, wait: 4_000 }))
  await clock.advance(500)
  store.ruleAll(lost)
  await clock.advance(3_400)
  expect(waiting.settled).toBe(false)
  await clock.advance(200)
  expect(waiting.error).toMatchObject({ lease: 'x' })
})

test('a permit of one request whose slot was lost before it was made is lost', async () => {
  const { locks, store } = stage()
  store.offerSelections()
  // A process that is paused right after the grant loses the slot like this.
  store.onLoss = ({ name }, notify) => {
    if (name === 'x') notify()
    return () => {}
  }
  const permit = await locks.semaphore('x', { limit: 2 }).acquire()
  expect(permit.slot).toBe(0)
  expect(() => permit.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  expect([permit.remaining, permit.signal.aborted]).toEqual([0, true])
  await expect(permit.ended).resolves.toBe('lost')
})

test('at the gate, a slot that is lost before it is counted is not handed out', async () => {
  const { locks, store } = stage()
  store.onLoss = ({ name }, notify) => {
    if (name === 'x') notify()
    return () => {}
  }
  const permit = await locks.semaphore('x', { limit: 2 }).acquire()
  expect(permit.slot).toBe(1)
  permit.assertHeld()
})

test('a slot that is lost before it is counted is asked for again while others are awaited', async () => {
  const { locks, other, store, server, clock } = stage()
  const slots = other.semaphore('x', { limit: 2 })
  const [first, second] = [await slots.acquire(), await slots.acquire()]
  await first.release()
  let losses = 0
  store.onLoss = ({ name }, notify) => {
    if (name === 'x' && losses === 0) {
      losses += 1
      void server.break('x', { by: 'test' }, AbortSignal.timeout(1_000))
      notify()
    }
    return () => {}
  }
  const acquiring = follow(locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 }))
  await clock.advance(1_000)
  expect([acquiring.settled, losses]).toEqual([false, 1])
  await second.release()
  await clock.advance(1_000)
  expect(acquiring.value?.slots.map(({ slot }) => slot)).toEqual([0, 1])
  expect(acquiring.value?.remaining).toBeGreaterThan(0)
})

test('the loss of a slot before its permit was made is reported, and releases the other slots', async () => {
  const { locks, store, server } = stage()
  store.offerSelections()
  store.onLoss = ({ name }, notify) => {
    if (name === 'x') notify()
    return () => {}
  }
  const events: string[] = []
  for (const name of ['lease_acquired', 'lease_lost'] as const)
    onTestFinished(subscribe(name, ({ lease }) => events.push(`${name} ${lease.name}`)))
  await expect(locks.readWrite('x').writer.using(async permit => permit.signal.aborted)).rejects.toMatchObject({
    code: 'LEASE_LOST',
    result: true,
  })
  expect(events).toEqual(['lease_acquired x', 'lease_lost x'])
  expect((await look(server, { prefix: '' })).filter(({ name }) => name !== 'x')).toEqual([])
})
