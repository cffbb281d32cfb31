import { describe, expect, test } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'
import { look } from '../../test/support.ts'
import type { Permit } from '../contract/lease.ts'
import { StoreLocks } from '../create-locks.ts'

test('grants up to the limit, each permit with a slot of its own, and refuses the next', async () => {
  const { locks, server } = stage()
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permits = [await semaphore.acquire(), await semaphore.tryAcquire(), await semaphore.acquire()]
  expect(permits).toMatchObject([0, 1, 2].map(slot => ({ name: 'api', limit: 3, slot, slots: [slot] })))
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await expect(semaphore.acquire({ wait: 0 })).rejects.toMatchObject({
    code: 'BUSY',
    leaseName: 'api',
    message: expect.stringMatching(/^"api" is not free for a slot of 3: one holder is .* \(slot \d\)/),
  })
  expect(await permits[1]?.release()).toBe('released')
  expect(await semaphore.tryAcquire()).toMatchObject({ slot: 1 })
  const records = await look(server, { prefix: '' })
  expect(records).toMatchObject([0, 1, 2].map(slot => ({ name: 'api', limit: 3, slots: [slot] })))
})

test('waiters are served in the order of their calls, one for each release', async () => {
  const { locks, clock, server } = stage()
  const semaphore = locks.semaphore('api', { limit: 2 })
  const held = [await semaphore.acquire(), await semaphore.acquire()]
  const order: number[] = []
  const waiting = [0, 1, 2].map(async index => {
    const permit = await semaphore.acquire()
    order.push(index)
    return permit
  })
  await clock.advance(20_000)
  expect(order).toEqual([])
  await held[1]?.release()
  await clock.advance(0)
  expect(order).toEqual([0])
  await held[0]?.release()
  await clock.advance(0)
  expect(order).toEqual([0, 1])
  await (await waiting[0])?.release()
  await clock.advance(0)
  expect(order).toEqual([0, 1, 2])
  await Promise.all([(await waiting[1])?.release(), (await waiting[2])?.release()])
  expect(await look(server, { prefix: '' })).toEqual([])
  expect(clock.pending).toBe(0)
})

test('never more than the limit with 50 tasks of two processes, weights and random releases', async () => {
  const { clock, server } = stage()
  let seed = 1
  const next = (): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const both = [0, 1].map(() => new StoreLocks(server, { ttl: 3_000 }, { clock, random: next }))
  const limit = 4
  let held = 0
  let done = 0
  let most = 0
  const slots = new Set<number>()
  const work = async (permit: Permit, permits: number): Promise<void> => {
    held += permits
    most = Math.max(most, held)
    for (const slot of permit.slots) {
      expect(slots.has(slot)).toBe(false)
      slots.add(slot)
    }
    await new Promise<void>(resolve => clock.after(next() * 500, resolve))
    for (const slot of permit.slots) slots.delete(slot)
    held -= permits
    done += 1
  }
  const tasks = Array.from({ length: 50 }, async (_, index) => {
    await new Promise<void>(resolve => clock.after(next() * 2_000, resolve))
    const permits = index % 5 === 0 ? 1 + (index % limit) : 1
    const semaphore = both[index % 2]?.semaphore('api', { limit })
    if (index % 7 === 0) {
      const permit = await semaphore?.tryAcquire()
      if (permit) await work(permit, 1)
      else done += 1
      await permit?.release()
    } else await semaphore?.using({ permits }, permit => work(permit, permits))
  })
  await clock.advance(60_000)
  expect({ done, most, held }).toEqual({ done: 50, most: limit, held: 0 })
  await Promise.all(tasks)
  expect(await look(server, { prefix: '' })).toEqual([])
  expect(clock.pending).toBe(0)
})

test('a limit of one, a lease of the name and a larger limit exclude each other', async () => {
  const { locks, other, clock } = stage()
  const lease = await other.acquire('api')
  const one = locks.semaphore('api', { limit: 1 })
  expect(await one.tryAcquire()).toBeUndefined()
  const waiting = follow(one.acquire())
  await clock.advance(0)
  await lease.release()
  await clock.advance(0)
  expect(waiting.value).toMatchObject({ slot: 0, limit: 1 })
  expect(waiting.value?.token).toBeGreaterThan(lease.token)
  expect(await other.tryAcquire('api')).toBeUndefined()
  expect(await other.semaphore('api', { limit: 2 }).tryAcquire()).toBeUndefined()
})

test.each([undefined, 3, 'three'])('options %j: the error shows how to state a limit', options => {
  const { locks } = stage()
  const call = (): unknown => locks.semaphore('x', options as never)
  expect(call).toThrow(/such as \{ limit: 3 \}/)
})

test.each([0, 1.5, 2 ** 31])('a limit of %d: the error says what is possible', limit => {
  const { locks } = stage()
  expect(() => locks.semaphore('x', { limit })).toThrow(`from 1 to 2147483647, not ${limit}`)
})

test('different limits: the smallest of those that hold counts', async () => {
  const { locks } = stage()
  const small = locks.semaphore('x', { limit: 2 })
  const large = locks.semaphore('x', { limit: 3 })
  const first = await small.acquire()
  await large.acquire()
  expect(await large.tryAcquire()).toBeUndefined()
  await first.release()
  expect(await large.tryAcquire()).toMatchObject({ slot: 0 })
  expect(await large.tryAcquire()).toMatchObject({ slot: 2 })
  expect(await small.tryAcquire()).toBeUndefined()
})

test('60 permits at a time', async () => {
  const { locks } = stage()
  const semaphore = locks.semaphore('x', { limit: 100 })
  const slots = await Promise.all(Array.from({ length: 40 }, async () => (await semaphore.acquire()).slot))
  expect(slots).toEqual(Array.from(slots, (_, index) => index))
  const { slots: others } = await semaphore.acquire({ permits: 60 })
  expect(others).toEqual(Array.from({ length: 60 }, (_, index) => 40 + index))
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await expect(locks.semaphore('x', { limit: 100 }).acquire({ permits: 65 })).rejects.toThrow('from 1 to 64, not 65')
})

describe('several permits', () => {
  test('all or none, and a try leaves nothing behind', async () => {
    const { locks, server } = stage()
    const semaphore = locks.semaphore('x', { limit: 3 })
    expect((await semaphore.acquire({ permits: 2 })).slots).toEqual([0, 1])
    expect(await semaphore.tryAcquire({ permits: 2 })).toBeUndefined()
    await expect(semaphore.acquire({ permits: 2, wait: 0 })).rejects.toThrow(
      '"x" is not free for 2 slots of 3: one holder is ',
    )
    expect(await look(server, { prefix: '' })).toHaveLength(1)
  })

  test('are lost and free as one', async () => {
    const { locks, other, clock, server } = stage({ ttl: 3_000 })
    const permit = await locks.semaphore('x', { limit: 3 }).acquire({ permits: 3 })
    await other.break('x')
    await clock.advance(1_100)
    expect(permit.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      leaseName: 'x',
      message: expect.stringContaining('the permit of "x"'),
    })
    expect(permit.remaining).toBe(0)
    expect(await look(server, { prefix: '' })).toEqual([])
    expect([await permit.release(), await permit.ended]).toEqual(['lost', 'lost'])
    expect(clock.pending).toBe(0)
  })

  test('one that waits is not starved by single permits, and passes none that came before', async () => {
    const { locks, clock } = stage()
    const semaphore = locks.semaphore('x', { limit: 3 })
    const held = await Promise.all([semaphore.acquire(), semaphore.acquire()])
    held.push(await semaphore.acquire())
    const log: string[] = []
    const big = semaphore.acquire({ permits: 3 }).then(permit => {
      log.push('big')
      return permit
    })
    await clock.advance(0)
    void semaphore.acquire().then(() => log.push('small'))
    await clock.advance(0)
    expect(await semaphore.tryAcquire()).toBeUndefined()
    for (const permit of held) {
      await permit.release()
      await clock.advance(0)
      expect(await semaphore.tryAcquire()).toBeUndefined()
    }
    await clock.advance(1_000)
    expect(log).toEqual(['big'])
    await (await big).release()
    await clock.advance(1_000)
    expect(log).toEqual(['big', 'small'])
  })
})

test('a wait that is over or aborted leaves nothing behind', async () => {
  const { locks, other, clock, server } = stage()
  await other.acquire('x')
  const semaphore = locks.semaphore('x', { limit: 2 })
  const timeout = follow(semaphore.acquire({ permits: 2, wait: 1_000 }))
  await clock.advance(1_000)
  expect(timeout.error).toMatchObject({ code: 'BUSY', holder: { owner: 'other' } })
  const stop = new AbortController()
  const aborted = follow(semaphore.acquire({ permits: 2, signal: stop.signal }))
  const behind = follow(semaphore.acquire({ permits: 2, signal: stop.signal }))
  await clock.advance(1_000)
  const reason = new Error('enough')
  stop.abort(reason)
  await clock.advance(0)
  expect([aborted.error, behind.error]).toEqual([reason, reason])
  expect(await look(server, { prefix: '' })).toHaveLength(1)
  await expect(semaphore.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})
