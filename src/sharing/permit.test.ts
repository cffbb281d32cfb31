import { expect, onTestFinished, test } from 'vitest'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { look } from '../../test/support.ts'
import { subscribe } from '../contract/events.ts'
import type { LeaseEvents } from '../contract/lease-events.ts'
import { StoreLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { VirtualClock } from '../testing/clock.ts'
import { testLocks } from '../testing/index.ts'

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
  await expect(losing).rejects.toMatchObject({ code: 'LEASE_LOST', leaseName: 'x', result: true })
  const stop = new AbortController()
  const aborted = semaphore.using(
    { signal: stop.signal },
    permit => new Promise((_, reject) => permit.signal.addEventListener('abort', () => reject(permit.signal.reason))),
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
    ...(['acquire_began', 'lease_acquired', 'not_acquired', 'heartbeat', 'lease_lost'] as const),
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
    ...['acquire_began', 'lease_acquired', 'acquire_began', 'not_acquired', 'lease_lost'],
  ])
  expect(new Set(seen)).toEqual(new Set(['x', both]))
  for (const stop of stops) stop()
})

test('extend, annotate and maxHold of a permit', async () => {
  const { locks, clock, server } = stage({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  const permit = await semaphore.acquire({ permits: 2, maxHold: 50_000 })
  expect(await permit.extend(20_000)).toBeGreaterThan(19_000)
  expect(permit.ttl).toBe(20_000)
  await permit.annotate('half')
  expect((await look(server, { prefix: '' })).map(({ note }) => note)).toEqual(['half'])
  expect(JSON.parse(JSON.stringify(permit))).toMatchObject({ name: 'x', slot: 0, slots: [0, 1], limit: 2 })
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
  for (const limit of ['2', undefined]) expect(() => locks.semaphore('x', { limit: limit as never })).toThrow(code)
  expect(() => locks.semaphore('', { limit: 1 })).toThrow(code)
  expect(() => locks.semaphore('x\u241f1', { limit: 2 })).toThrow(/reserved/)
  expect(() => locks.semaphore('x', { limit: 1, permits: 1 } as never)).toThrow(code)
  const semaphore = locks.semaphore('x'.repeat(255), { limit: 2 })
  for (const permits of [0, 3, 1.5]) await expect(semaphore.acquire({ permits })).rejects.toEqual(code)
  await expect(semaphore.acquire({ limit: 2 } as never)).rejects.toEqual(code)
  await expect(semaphore.tryAcquire({ wait: 2 } as never)).rejects.toEqual(code)
  await expect(semaphore.using(1 as never)).rejects.toEqual(code)
  for (const each of [locks.readWrite('x').reader, locks.readWrite('x').writer])
    await expect(each.acquire({ permits: 1 } as never)).rejects.toEqual(code)
  expect((await semaphore.acquire({ permits: 2 })).slots).toEqual([0, 1])
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

test('lose() of test locks ends a slot of a permit', async () => {
  const locks = testLocks()
  const semaphore = locks.semaphore('x', { limit: 3 })
  const first = await semaphore.acquire()
  const second = await semaphore.acquire()
  await first.release()
  await locks.lose('x')
  expect(second.signal.reason).toMatchObject({ code: 'LEASE_LOST', leaseName: 'x' })
  await expect(locks.lose('x')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})
