import { describe, expect, test } from 'vitest'
import { follow, lost, stage } from '../../../test/scripted-store.ts'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import { StoreLocks } from '../../create-locks.ts'
import type { Permit } from './permit.ts'

test('grants up to the limit, each permit with a slot and a token, and refuses the next', async () => {
  const { locks, server } = stage()
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permits = [await semaphore.acquire(), await semaphore.tryAcquire(), await semaphore.acquire()]
  expect(permits.map(permit => permit?.slot)).toEqual([0, 1, 2])
  for (const permit of permits) {
    expect(permit).toMatchObject({ name: 'api', token: expect.any(BigInt) })
    expect(permit?.slots).toEqual([{ slot: permit?.slot, token: permit?.token }])
    permit?.assertHeld()
  }
  expect(await semaphore.tryAcquire()).toBeUndefined()
  await expect(semaphore.acquire({ wait: 0 })).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    lease: 'api',
    message: '"api" was not acquired: its 3 slots are held',
  })
  expect(await permits[1]?.release()).toBe('released')
  expect(await semaphore.tryAcquire()).toMatchObject({ slot: 1 })
  expect((await look(server, { prefix: '' })).map(({ name }) => name).sort()).toEqual([
    'api',
    'api\u241f1',
    'api\u241f2',
  ])
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
    for (const { slot } of permit.slots) {
      expect(slots.has(slot)).toBe(false)
      slots.add(slot)
    }
    await new Promise<void>(resolve => clock.after(next() * 500, resolve))
    for (const { slot } of permit.slots) slots.delete(slot)
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
    } else await semaphore?.using(permit => work(permit, permits), { permits })
  })
  await clock.advance(60_000)
  expect({ done, most, held }).toEqual({ done: 50, most: limit, held: 0 })
  await Promise.all(tasks)
  expect(await look(server, { prefix: '' })).toEqual([])
  expect(clock.pending).toBe(0)
})

test('a limit of one and the lease of the name exclude each other', async () => {
  const { locks, other, clock } = stage()
  const lease = await other.acquire('api')
  const one = locks.semaphore('api', { limit: 1 })
  expect(await one.tryAcquire()).toBeUndefined()
  const waiting = follow(one.acquire())
  await clock.advance(0)
  await lease.release()
  await clock.advance(0)
  expect(waiting.value).toMatchObject({ slot: 0 })
  expect(waiting.value?.token).toBeGreaterThan(lease.token)
  expect(await other.tryAcquire('api')).toBeUndefined()
  expect(await other.semaphore('api', { limit: 2 }).tryAcquire()).toMatchObject({ slot: 1 })
})

test('names that look like slots and gates are other names', async () => {
  const { locks } = stage()
  for (const name of ['x', 'x#0', 'x#1', 'x#gate', 'x:1']) expect(await locks.tryAcquire(name)).toBeDefined()
  expect(await locks.semaphore('x', { limit: 2 }).tryAcquire()).toMatchObject({ slot: 1 })
  await expect(locks.acquire('x\u241f1')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(() => locks.semaphore('x\u241f1', { limit: 2 })).toThrow(/reserved/)
  expect(await locks.inspect('x\u241f1')).toMatchObject({ holder: { state: 'held' } })
})

test.each([undefined, 3, 'three'])('options %j: the error shows how to state a limit', options => {
  const { locks } = stage()
  const call = (): unknown => locks.semaphore('x', options as never)
  expect(call).toThrow(/such as \{ limit: 3 \}/)
})

test.each([
  [0, /from 1 to 16, not 0$/],
  [17, /not 17: .* Use several names/],
])('a limit of %d: the error says why, and what to do', (limit, message) => {
  const { locks } = stage()
  expect(() => locks.semaphore('x', { limit })).toThrow(message)
})

test('different limits: a call never takes a slot at or above its own', async () => {
  const { locks } = stage()
  const small = locks.semaphore('x', { limit: 1 })
  const large = locks.semaphore('x', { limit: 3 })
  const permits = [await large.acquire(), await large.acquire()]
  expect(await small.tryAcquire()).toBeUndefined()
  await permits[0]?.release()
  expect(await small.tryAcquire()).toMatchObject({ slot: 0 })
  expect(await large.tryAcquire()).toMatchObject({ slot: 2 })
  expect(await large.tryAcquire()).toBeUndefined()
})

describe('weights', () => {
  test('all or none, and a try leaves nothing behind', async () => {
    const { locks, server, clock } = stage()
    const semaphore = locks.semaphore('x', { limit: 3 })
    const two = await semaphore.acquire({ permits: 2 })
    expect(two.slots.map(({ slot }) => slot)).toEqual([0, 1])
    expect(two.token).toBe(two.slots[0]?.token)
    expect(await semaphore.tryAcquire({ permits: 2 })).toBeUndefined()
    expect(await look(server, { prefix: '' })).toHaveLength(2)
    await expect(semaphore.acquire({ permits: 2, wait: 0 })).rejects.toThrow('only 1 of the 2 slots that it needs')
    await clock.advance(0)
    expect(await look(server, { prefix: '' })).toHaveLength(2)
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

  test('one slot lost: the signal aborts, and the others are free at once', async () => {
    const { locks, other, clock, server } = stage({ ttl: 3_000 })
    const semaphore = locks.semaphore('x', { limit: 3 })
    const permit = await semaphore.acquire({ permits: 3 })
    await other.break('x\u241f1')
    await clock.advance(1_100)
    expect(permit.signal.reason).toMatchObject({ code: 'LEASE_LOST', lease: 'x' })
    expect(() => permit.assertHeld()).toThrow(/its slot 1/)
    expect(permit.remaining).toBe(0)
    expect(await look(server, { prefix: '' })).toEqual([])
    expect(await permit.release()).toBe('lost')
    expect(await permit.ended).toBe('lost')
    expect(clock.pending).toBe(0)
  })

  test('a slot that is lost while the call waits for others is asked for again', async () => {
    const { locks, other, clock } = stage({ ttl: 3_000 })
    const held = await other.acquire('x')
    const waiting = follow(locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 }))
    await clock.advance(100)
    await other.break('x\u241f1')
    await clock.advance(5_000)
    await held.release()
    await clock.advance(0)
    expect(waiting.value?.slots).toHaveLength(2)
    await clock.advance(10_000)
    waiting.value?.assertHeld()
  })
})

test('the slots of a process that died are free after the ttl, and its gate too', async () => {
  const { locks, other, store, clock } = stage({ ttl: 3_000 })
  const semaphore = locks.semaphore('x', { limit: 2 })
  await semaphore.acquire({ permits: 2 })
  void semaphore.acquire().catch(() => {})
  await clock.advance(0) // it holds the gate, and waits
  store.ruleAll(lost)
  const next = follow(other.semaphore('x', { limit: 2 }).acquire({ permits: 2 }))
  await clock.advance(2_900)
  expect(next.settled).toBe(false)
  await clock.advance(3_300)
  expect(next.value?.slots).toHaveLength(2)
})

test.each(['general', 'short'])('a try takes no free slot while another call is at the gate, the %s way', async way => {
  const { locks, server, store, clock } = stage()
  if (way === 'short') store.offerSelections()
  const gate = claimOf('x\u241fgate')
  await hold(server, gate)
  const { reader, writer } = locks.readWrite('x')
  const tries = [locks.semaphore('x', { limit: 2 }), reader, writer].map(each => follow(each.tryAcquire()))
  await clock.advance(1_000)
  for (const each of tries) expect(each).toMatchObject({ settled: true, value: undefined, error: undefined })
  await server.release(gate, signal)
  expect(await writer.tryAcquire()).toBeDefined()
})

test('a gate that is lost ends the wait of its holder, which withdraws everything and begins anew', async () => {
  const { locks, other, clock, server } = stage({ ttl: 6_000 })
  const first = await other.acquire('x')
  const two = follow(locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 })) // holds slot 1, waits for slot 0
  await clock.advance(0)
  await other.break('x\u241fgate')
  const second = follow(other.semaphore('x', { limit: 2 }).acquire({ permits: 2 }))
  await clock.advance(2_000)
  // The old holder of the gate has learned of the loss, and stands behind the new one with no slot.
  const records = await look(server, { prefix: '' })
  expect(records.find(({ name, state }) => name === 'x\u241f1' && state === 'held')).toMatchObject({ owner: 'other' })
  await first.release()
  await clock.advance(0)
  expect([two.settled, second.value?.slots.length]).toEqual([false, 2])
  await second.value?.release()
  await clock.advance(0)
  expect(two.value?.slots).toHaveLength(2)
})

test('a wait that is over or aborted leaves nothing behind', async () => {
  const { locks, other, clock, server } = stage()
  await other.acquire('x')
  const semaphore = locks.semaphore('x', { limit: 2 })
  const timeout = follow(semaphore.acquire({ permits: 2, wait: 1_000 }))
  await clock.advance(1_000)
  expect(timeout.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT', holder: { owner: 'other' } })
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

test('the loss of another than the first slot ends the permit, whether or not anybody looks at it', async () => {
  const { locks, clock, server } = stage({ ttl: 3_000 })
  const permit = await locks.semaphore('x', { limit: 2 }).acquire({ permits: 2 })
  const losses: string[] = []
  permit.signal.addEventListener('abort', () => losses.push(permit.signal.reason.message))
  await server.break('x\u241f1', { by: 'test' }, signal)
  await clock.advance(1_100) // its next renewal
  expect(losses).toEqual([expect.stringContaining('because its slot 1')])
  expect(await look(server, { prefix: '' })).toEqual([])
})
