import { describe, expect, test, vi } from 'vitest'
import { follow, lost, refused, stage, unanswered } from '../../../test/scripted-store.ts'
import { look } from '../../../test/support.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Permit } from './permit.ts'

/** Locks over a store that has `acquireSome`. */
function staged(): ReturnType<typeof stage> {
  const all = stage({ ttl: 1_000 })
  all.store.offerSelections()
  return all
}

test('a permit that need not wait takes one request, and its release another', async () => {
  const { locks, store, server } = staged()
  const permit = await locks.semaphore('api', { limit: 3 }).acquire({ permits: 2 })
  expect(permit.slots.map(({ slot }) => slot)).toEqual([0, 1])
  expect(store.calls).toEqual(['acquireSome'])
  await permit.release()
  expect(store.count('release')).toBe(2)
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('a try that finds too few free slots ends after one request, and the error names a holder', async () => {
  const { locks, other, store } = staged()
  await other.semaphore('api', { limit: 2 }).acquire()
  expect(await locks.semaphore('api', { limit: 2 }).tryAcquire({ permits: 2 })).toBeUndefined()
  await expect(locks.semaphore('api', { limit: 2 }).acquire({ wait: 0, permits: 2 })).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    message: '"api" was not acquired: only 1 of the 2 slots that it needs were free',
    holder: { owner: expect.any(String), state: 'held' },
  })
  expect(store.calls).toEqual(['acquireSome', 'acquireSome'])
})

test('a call that must wait holds the gate and waits for every slot, by the same request', async () => {
  const { locks, other, store, server, clock } = staged()
  const semaphore = other.semaphore('api', { limit: 2 })
  const held = [await semaphore.acquire(), await semaphore.acquire()]
  const waiting = follow(locks.semaphore('api', { limit: 2 }).acquire())
  await clock.advance(100)
  expect(waiting.settled).toBe(false)
  const records = await look(server, { prefix: 'api' })
  expect(records.map(({ name, state }) => [name, state])).toEqual([
    ['api', 'held'],
    ['api', 'waiting'],
    ['api\u241f1', 'held'],
    ['api\u241f1', 'waiting'],
    ['api\u241fgate', 'held'],
  ])
  await held[1]?.release()
  await clock.advance(0)
  expect(waiting.value).toMatchObject({ slot: 1 })
  expect((await look(server, { prefix: 'api' })).map(({ name }) => name)).toEqual(['api', 'api\u241f1'])
  expect(store.count('acquire')).toBe(0)
})

test('a call that waits keeps the gate for longer than its ttl', async () => {
  const { locks, other, store, server, clock } = staged()
  const held = await other.semaphore('api', { limit: 1 }).acquire({ ttl: 60_000 })
  const waiting = follow(locks.semaphore('api', { limit: 1 }).acquire())
  await clock.advance(100)
  const [, , gate] = await look(server, { prefix: 'api' })
  await clock.advance(10_000)
  expect((await look(server, { prefix: 'api' }))[2]?.token).toBe(gate?.token)
  expect(store.count('acquireSome')).toBeLessThan(50)
  await held.release()
  await clock.advance(0)
  expect(waiting.value).toMatchObject({ slot: 0 })
})

test('a call whose gate is broken waits at the gate again, and for no slot', async () => {
  const { locks, other, server, clock } = staged()
  const held = await other.semaphore('api', { limit: 1 }).acquire({ ttl: 60_000 })
  const waiting = follow(locks.semaphore('api', { limit: 1 }).acquire())
  await clock.advance(100)
  await server.break('api\u241fgate', { by: 'test' }, AbortSignal.timeout(1_000))
  const next = follow(other.semaphore('api', { limit: 1 }).acquire())
  await clock.advance(1_000)
  const records = await look(server, { prefix: 'api' })
  expect(records.filter(({ name, state }) => name === 'api' && state === 'waiting')).toHaveLength(1)
  await held.release()
  await clock.advance(0)
  const first = [waiting, next].find(({ settled }) => settled)
  await first?.value?.release()
  await clock.advance(1_000)
  expect([waiting, next].map(({ value }) => value?.slot)).toEqual([0, 0])
})

test('a call that ends at the gate withdraws only from there', async () => {
  const { locks, other, store, server, clock } = staged()
  await other.semaphore('api', { limit: 2 }).acquire({ permits: 2, ttl: 60_000 })
  const before = follow(other.semaphore('api', { limit: 2 }).acquire())
  await clock.advance(100)
  const ending = follow(locks.semaphore('api', { limit: 2 }).acquire({ wait: 100 }))
  await clock.advance(200)
  expect(ending.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  expect(store.count('release')).toBe(1)
  expect((await look(server, { name: 'api\u241fgate' })).map(({ state }) => state)).toEqual(['held'])
  expect(before.settled).toBe(false)
})

test('of two calls that find all slots taken, the one that ends at the gate withdraws only from there', async () => {
  const { locks, other, store, clock } = staged()
  await other.semaphore('api', { limit: 2 }).acquire({ permits: 2, ttl: 60_000 })
  const [before, ending] = [Number.POSITIVE_INFINITY, 100].map(wait =>
    follow(locks.semaphore('api', { limit: 2 }).acquire({ wait })),
  )
  await clock.advance(200)
  expect(ending?.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  expect(store.count('release')).toBe(1)
  expect(before?.settled).toBe(false)
})

test('a try does not ask for slots that a permit of the same locks holds', async () => {
  const { locks, store } = staged()
  const semaphore = locks.semaphore('api', { limit: 3 })
  const first = await semaphore.tryAcquire()
  await semaphore.tryAcquire()
  expect(store.selection?.claims.map(({ name }) => name)).toEqual(['api\u241f1', 'api\u241f2'])
  await first?.release()
  expect(await semaphore.tryAcquire()).toMatchObject({ slot: 0 })
})

test('a call asks for one slot alone, unless an earlier one found it taken or this process holds all', async () => {
  const { locks, other, store, clock } = staged()
  const acquire = (): Promise<Permit> => locks.semaphore('api', { limit: 3 }).acquire()
  const asked = (): number | undefined => store.selection?.claims.length
  const taken = await other.semaphore('api', { limit: 3 }).acquire()
  const held = [await acquire()]
  expect([store.calls.length, asked()]).toEqual([2, 3])
  held.push(await acquire())
  expect([store.calls.length, asked()]).toEqual([3, 3])
  await taken.release()
  held.push(await acquire()) // finds the lowest free one again
  for (const permit of held) await permit.release()
  const before = store.count('acquireSome')
  held.splice(0, 3, await acquire(), await acquire(), await acquire())
  expect([store.count('acquireSome') - before, asked()]).toEqual([3, 1])
  const waiting = follow(acquire())
  expect([store.count('acquireSome') - before, asked()]).toEqual([4, 3])
  await held[0]?.release()
  await clock.advance(0)
  expect(waiting.value?.slot).toBe(0)
})

test('calls at the same moment ask for different slots first', async () => {
  const { locks, store } = staged()
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permits = await Promise.all([semaphore.acquire(), semaphore.acquire(), semaphore.acquire()])
  expect(permits.map(({ slot }) => slot)).toEqual([0, 1, 2])
  expect(store.calls).toEqual(['acquireSome', 'acquireSome', 'acquireSome'])
})

describe('an answer that does not come', () => {
  test('a call for one slot asks again, and gets what was granted', async () => {
    const { locks, store, clock, server } = staged()
    store.rule('acquireSome', unanswered)
    const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire())
    await clock.advance(400)
    store.restore('acquireSome')
    await clock.advance(600)
    const { token } = (await look(server, { prefix: 'api' }))[0] ?? {}
    expect(acquiring.value).toMatchObject({ name: 'api', token })
    expect(await acquiring.value?.release()).toBe('released')
    await clock.advance(1_000)
    expect(await look(server, { prefix: '' })).toEqual([])
  })

  test('a call withdraws from the slots that it did not get: a copy of the request may still come for one', async () => {
    const { locks, store, clock, server } = staged()
    const released: string[] = []
    vi.spyOn(server, 'release').mockImplementation(async ({ name }) => {
      released.push(name)
      return 'gone'
    })
    store.rule('acquireSome', lost)
    const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire())
    await clock.advance(400)
    store.restore('acquireSome')
    await clock.advance(600)
    expect(acquiring.value).toMatchObject({ slot: 1 })
    expect(released.sort()).toEqual(['api', 'api\u241fgate'])
  })

  test('one that comes after the next request does not mix up the slots', async () => {
    const { locks, other, store, clock, server } = staged()
    const semaphore = locks.semaphore('api', { limit: 3 })
    const held = await semaphore.acquire()
    await other.semaphore('api', { limit: 3 }).acquire({ ttl: 60_000 })
    const replies = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    store.rule('acquireSome', async forward => {
      const reply = replies.shift()?.promise
      const answer = await forward()
      await reply
      return answer
    })
    const [first, second] = replies
    const acquiring = follow(locks.semaphore('api', { limit: 3 }).acquire()) // for slot 1 alone, then for all
    await clock.advance(400)
    expect(store.selection?.claims.map(({ name }) => name)).toEqual(['api\u241f2', 'api\u241f1', 'api'])
    await held.release() // now slot 0 comes before 2
    first?.resolve()
    await clock.advance(0)
    second?.resolve()
    await clock.advance(100)
    const records = await look(server, { prefix: 'api' })
    expect(records.map(({ name }) => name)).toEqual(['api\u241f1', 'api\u241f2'])
    expect(acquiring.value?.slots).toEqual([{ slot: 2, token: records[1]?.token }])
  })

  test('a call that waits with the gate asks again before the gate ends', async () => {
    const { locks, other, store, clock } = staged()
    const held = await other.semaphore('api', { limit: 1 }).acquire({ ttl: 60_000 })
    const waiting = follow(locks.semaphore('api', { limit: 1 }).acquire({ ttl: 60_000 }))
    await clock.advance(500)
    const next = follow(other.semaphore('api', { limit: 1 }).acquire({ ttl: 60_000 }))
    await clock.advance(500)
    let isFirst = true
    store.rule('acquireSome', (forward, signal) => {
      if (!isFirst) return forward()
      isFirst = false
      return lost(forward, signal)
    })
    await clock.advance(7_000)
    await held.release()
    await clock.advance(200)
    expect([waiting, next].map(({ settled }) => settled)).toEqual([true, false])
  })

  test('a call for several waits no longer for it than its wait lasts', async () => {
    const { locks, store, clock } = staged()
    store.rule('acquireSome', lost)
    const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire({ permits: 2, ttl: 60_000, wait: 100 }))
    await clock.advance(110)
    expect(acquiring.value).toMatchObject({ name: 'api' })
  })

  test('a call for several goes on at the gate, and what was granted is withdrawn', async () => {
    const { locks, store, clock, server } = staged()
    store.rule('acquireSome', unanswered)
    const acquiring = follow(locks.semaphore('api', { limit: 4 }).acquire({ permits: 2 }))
    await clock.advance(1_000)
    expect(acquiring.value).toMatchObject({ name: 'api' })
    const records = await look(server, { prefix: 'api' })
    expect(records.map(({ state, token }) => ({ state, token }))).toEqual(
      acquiring.value?.slots.map(({ token }) => ({ state: 'held', token })),
    )
  })

  test('a try rejects, and leaves nothing behind', async () => {
    const { locks, store, clock, server } = staged()
    store.rule('acquireSome', unanswered)
    const trying = follow(locks.semaphore('api', { limit: 2 }).tryAcquire())
    await clock.advance(2_000)
    expect(trying.error).toMatchObject({ code: 'STORE_UNAVAILABLE', lease: 'api' })
    expect(await look(server, { prefix: '' })).toEqual([])
  })

  test('a grant that arrives after its ttl is withdrawn', async () => {
    const { locks, store, clock, server } = staged()
    store.rule('acquireSome', async forward => {
      const answer = await forward()
      await clock.block(5_000) // the timer of the request is not served meanwhile
      return answer
    })
    await expect(locks.semaphore('api', { limit: 1 }).tryAcquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await clock.advance(1_000)
    expect(await look(server, { prefix: '' })).toEqual([])
  })
})

test('a call that is aborted rejects with the reason, and what was granted is withdrawn', async () => {
  const { locks, store, clock, server } = staged()
  const controller = new AbortController()
  const reply = store.holdReplies('acquireSome')
  const acquiring = follow(locks.semaphore('api', { limit: 2 }).acquire({ signal: controller.signal }))
  await clock.advance(10)
  controller.abort('enough')
  await clock.advance(0)
  expect(acquiring.error).toBe('enough')
  reply()
  await clock.advance(1_000)
  expect(await look(server, { prefix: '' })).toEqual([])
})

test('an error that no retry can cure is thrown', async () => {
  const { locks, store } = staged()
  store.rule('acquireSome', () => Promise.reject(new LeaseError('INVALID_ARGUMENT', 'no permission')))
  await expect(locks.semaphore('api', { limit: 2 }).acquire()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(store.count('acquire')).toBe(0)
})

test('a store that refuses the connection is asked again, and a try rejects', async () => {
  const { locks, store, clock } = staged()
  store.rule('acquireSome', refused)
  await expect(locks.semaphore('api', { limit: 1 }).tryAcquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  const acquiring = follow(locks.semaphore('api', { limit: 1 }).acquire())
  await clock.advance(100)
  store.restore('acquireSome')
  await clock.advance(1_000)
  expect(acquiring.value).toMatchObject({ slot: 0 })
})

test('nothing is asked if the call was aborted before', async () => {
  const { locks, store } = staged()
  store.ruleAll(lost)
  const signal = AbortSignal.abort('never')
  await expect(locks.semaphore('api', { limit: 1 }).acquire({ signal })).rejects.toBe('never')
  expect(store.calls).toEqual([])
})
