import { expect, test } from 'vitest'
import { follow, type Stage, stage, unanswered } from '../../test/scripted-store.ts'
import { look } from '../../test/support.ts'
import { subscribe } from '../contract/events.ts'

/** Over a store whose claims hold alone. A call tries the tickets from the middle. */
function alone(): Stage {
  return stage({ ttl: 3_000 }, { sharing: 'exclusive', order: 'not promised' })
}

test('each permit is a lease on a ticket of its own, up to the limit', async () => {
  const { locks, other, server } = alone()
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permits = [await semaphore.acquire(), await semaphore.tryAcquire(), await semaphore.acquire()]
  expect(permits).toMatchObject([
    { name: 'api#1', limit: 3, slot: 1, slots: [1] },
    { name: 'api#2', limit: 3, slot: 2, slots: [2] },
    { name: 'api', limit: 3, slot: 0, slots: [0] },
  ])
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await expect(semaphore.acquire({ wait: 0 })).rejects.toMatchObject({
    code: 'BUSY',
    leaseName: 'api',
    message: expect.stringMatching(/^"api" is not free for a slot of \d+: one holder is /),
  })
  expect(await other.tryAcquire('api#2')).toBeUndefined()
  for (const permit of permits) expect(await permit?.release()).toBe('released')
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('a limit of one is the lease of the name, and waits in its queue', async () => {
  const { locks, other, clock } = alone()
  const lease = await other.acquire('api')
  const waiting = follow(locks.semaphore('api', { limit: 1 }).acquire())
  await clock.advance(0)
  expect((await other.inspect('api')).waiters).toHaveLength(1)
  await lease.release()
  await clock.advance(0)
  expect(waiting.value).toMatchObject({ name: 'api', slot: 0, limit: 1 })
})

test('a call that waits asks again until a ticket is free, and leaves nothing behind when it gives up', async () => {
  const { locks, other, clock, server, store } = alone()
  const held = await Promise.all(['api', 'api#1'].map(name => other.acquire(name)))
  const semaphore = locks.semaphore('api', { limit: 2 })
  const timeout = follow(semaphore.acquire({ wait: 10_000 }))
  await clock.advance(10_000)
  expect(timeout.error).toMatchObject({ code: 'BUSY', leaseName: 'api', holder: { owner: 'other' } })
  expect(store.count('acquire')).toBeLessThanOrEqual(2 * 101) // two for each 100 ms
  const stop = new AbortController()
  const aborted = follow(semaphore.acquire({ signal: stop.signal }))
  const waiting = follow(semaphore.acquire())
  await clock.advance(20_000)
  stop.abort('enough')
  await held[1]?.release()
  await clock.advance(150)
  expect(aborted.error).toBe('enough')
  expect(waiting.value).toMatchObject({ slot: 1 })
  await held[0]?.release()
  await waiting.value?.release()
  expect(await look(server, { prefix: '' })).toEqual([])
  await clock.advance(10_000)
  expect(clock.pending).toBe(0)
})

test('a call asks for a bounded number of tickets, however many there are', async () => {
  const { locks, other, clock, store } = alone()
  const semaphore = locks.semaphore('api', { limit: 40 })
  for (let ticket = 0; ticket < 40; ticket += 1) await other.acquire(ticket ? `api#${ticket}` : 'api')
  expect(await semaphore.tryAcquire()).toBeUndefined()
  expect(store.count('acquire')).toBe(16)
  const waiting = follow(semaphore.acquire())
  await clock.advance(0)
  expect(store.count('acquire')).toBe(32)
  await clock.advance(150)
  expect(store.count('acquire')).toBe(36)
  await other.break('api#17') // it comes round to it
  await clock.advance(3_000)
  expect(waiting.value).toMatchObject({ slot: 17 })
})

test('a ticket that was granted by an answer that is lost is asked for again, and no other is held', async () => {
  const { locks, clock, store, server } = alone()
  store.rule('acquire', unanswered)
  const acquiring = follow(locks.semaphore('api', { limit: 5 }).acquire())
  await clock.advance(0)
  store.restore('acquire')
  await clock.advance(3_000)
  expect(acquiring.value).toMatchObject({ slot: 2 })
  expect(await look(server, { prefix: '' })).toHaveLength(1)
})

test('a request that arrives after another ticket was granted acquires nothing', async () => {
  const { locks, other, clock, store, server } = alone()
  const arrive = store.holdRequests('acquire')
  const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire())
  await clock.advance(0)
  const busy = await other.acquire('api#1')
  store.restore('acquire')
  await clock.advance(3_000)
  expect(acquiring.value).toMatchObject({ slot: 0 })
  await busy.release()
  arrive()
  await clock.advance(0)
  expect(await look(server, { prefix: '' })).toMatchObject([{ name: 'api' }])
})

test('a call that is aborted before its answer withdraws the ticket', async () => {
  const { locks, clock, store, server } = alone()
  const answer = store.holdReplies('acquire')
  const stop = new AbortController()
  const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire({ signal: stop.signal }))
  await clock.advance(0)
  stop.abort('enough')
  answer()
  await clock.advance(1_000)
  expect(acquiring.error).toBe('enough')
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('the events are those of one call', async () => {
  const { locks, other, clock } = alone()
  const seen: string[] = []
  const semaphore = locks.semaphore('api', { limit: 2 })
  await other.acquire('api#1')
  const stops = [
    subscribe('acquire_began', ({ name, kind }) => seen.push(`began ${name} ${kind}`)),
    subscribe('not_acquired', ({ name }) => seen.push(`failed ${name}`)),
    subscribe('lease_busy', ({ name }) => seen.push(`busy ${name}`)),
    subscribe('lease_acquired', ({ lease, requests }) => seen.push(`acquired ${lease.name} ${requests}`)),
    subscribe('lease_released', ({ lease }) => seen.push(`released ${lease.name}`)),
  ]
  const permit = await semaphore.acquire()
  await semaphore.tryAcquire()
  await permit.release()
  await clock.advance(0)
  for (const stop of stops) stop()
  const first = ['began api permit', 'acquired api 2']
  expect(seen).toEqual([...first, 'began api permit', 'busy api', 'failed api', 'released api'])
})

test('several permits, readers and writers are refused with the reason', async () => {
  const { locks, store } = alone()
  const several = locks.semaphore('api', { limit: 3 }).acquire({ permits: 2 })
  await expect(several).rejects.toThrow('permits must be 1 over scripted, not 2: it keeps no queue')
  expect(() => locks.readWrite('api')).toThrow('readers would starve a writer')
  expect(() => locks.semaphore('x'.repeat(251), { limit: 10_000 })).toThrow('the last ticket of "xxx')
  expect(store.calls).toEqual([])
})
