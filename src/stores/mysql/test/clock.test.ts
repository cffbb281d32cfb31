import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt } from './support.ts'

const HOUR = 3_600_000

let clock: ShiftedClock
let server: MariaDbServer
let store: Store

beforeAll(async () => {
  clock = startClock()
  // In this mode '' is null, also in statements that delete idle rows.
  server = await startMariaDb({ clock, config: { sql_mode: 'EMPTY_STRING_IS_NULL' } })
  store = storeAt(server.url())
  await hold(store, claimOf('warm'))
})
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await server.stop()
  clock.stop()
})

test.each([-HOUR, HOUR, -3 * HOUR])('tokens rise although the clock of the server was set by %i ms', async jump => {
  const claim = claimOf('rising')
  const before = await hold(store, claim)
  await store.release(claim, signal)
  clock.jumpWall(jump)
  const again = claimOf('rising')
  expect(await hold(store, again)).toBeGreaterThan(before)
  await store.release(again, signal)
})

test('a token falls only if all rows are lost and the clock is then behind the last grant', async () => {
  const take = async (): Promise<bigint> => {
    const claim = claimOf('falling')
    const token = await hold(store, claim)
    await store.release(claim, signal)
    return token
  }
  const lose = (): Promise<unknown> => server.query('delete from holdfast_lease')
  const first = await take()
  await lose()
  const second = await take()
  expect(second).toBeGreaterThan(first)
  clock.jumpWall(-HOUR)
  const third = await take()
  expect(third).toBeGreaterThan(second)
  await lose()
  expect(await take()).toBeLessThan(third)
  clock.jumpWall(HOUR)
})

test('tokens of names whose rows were deleted never fall, although the clock is set back by days', async () => {
  const claims = Array.from({ length: 400 }, (_, index) => claimOf(`pruned ${index}`))
  const tokens = await Promise.all(claims.map(claim => hold(store, claim)))
  await Promise.all(claims.map(claim => store.release(claim, signal)))
  clock.jumpWall(50 * HOUR)
  const count = async (): Promise<number> =>
    (await server.query("select 1 from holdfast_lease where name like 'pruned%'")).length
  await until('they are deleted', async () => {
    const others = Array.from({ length: 260 }, () => claimOf(`other ${Math.random()}`, { ttl: 1_000 }))
    await Promise.all(others.map(claim => hold(store, claim)))
    return (await count()) === 0
  })
  clock.jumpWall(-200 * HOUR)
  const again = await Promise.all(claims.map(({ name }) => hold(store, claimOf(name))))
  for (const [index, token] of again.entries()) expect(token).toBeGreaterThan(tokens[index] as bigint)
  expect(await look(store, { prefix: '' })).not.toContainEqual(expect.objectContaining({ name: '' }))
  clock.jumpWall(150 * HOUR)
})

test.each([false, true])(
  'a lease lasts no longer than its ttl once another asks, after the clock was set back (asked for again: %s)',
  async isAskedAgain => {
    const claim = claimOf(`long ${isAskedAgain}`, { ttl: 2_000 })
    const token = await hold(store, claim)
    clock.jumpWall(-HOUR)
    if (isAskedAgain) expect(await hold(store, claim)).toBe(token)
    const asked = performance.now()
    const next = claimOf(claim.name, { queue: true })
    expect(await acquire(store, next)).toMatchObject({ held: false })
    await until('it is passed on', async () => (await acquire(store, next)).held)
    expect(performance.now() - asked).toBeGreaterThan(1_900)
  },
)

test('a name that was released before the clock was set back is free at once, and its queue is served', async () => {
  const [holder, first, second] = [claimOf('left'), claimOf('left', { queue: true }), claimOf('left', { queue: true })]
  await hold(store, holder)
  await acquire(store, first)
  await acquire(store, second)
  await store.release(holder, signal)
  clock.jumpWall(-HOUR)
  await until('the second is served although the first is dead', async () => (await acquire(store, second)).held)
})

test('a waiter that asks again lasts no longer than its ttl, after the clock was set back', async () => {
  const waiter = claimOf('waits', { queue: true })
  await hold(store, claimOf('waits'))
  await acquire(store, waiter)
  clock.jumpWall(-HOUR)
  await acquire(store, waiter)
  const [, waiting] = await look(store, { name: 'waits' })
  expect(waiting?.remaining).toBeLessThanOrEqual(waiter.ttl)
})

test('a request is not refused because the clock of the server was set forward', async () => {
  const claim = claimOf('forward', { ttl: 5 * HOUR })
  const token = await hold(store, claim)
  clock.jumpWall(HOUR)
  expect(await store.renew(claim, signal)).toMatchObject({ token })
  clock.jumpWall(HOUR)
  expect(await store.break('forward', 'test', signal)).toBeGreaterThan(token)
})

test('a step forward ends leases early, and their holders find out at the next renewal', async () => {
  const claim = claimOf('early')
  await hold(store, claim)
  clock.jumpWall(HOUR)
  expect(await store.renew(claim, signal)).toBeUndefined()
  expect(await look(store, { name: 'early' })).toEqual([])
})

test('a token that cannot rise any more is refused, and its neighbours are not, even when idle rows are deleted', async () => {
  const last = Number.MAX_SAFE_INTEGER
  const idle = `insert into holdfast_lease values ('idle', null, '', '', 7, 0, 0, 1)`
  await server.query(`${idle}, ('used up', null, '', '', ${last}, 0, 0, 1)`)
  await until('the other idle row is deleted', async () => {
    const others = Array.from({ length: 260 }, () => claimOf(`other ${Math.random()}`, { ttl: 1_000 }))
    await Promise.all(others.map(claim => hold(store, claim)))
    return (await server.query("select 1 from holdfast_lease where name = 'idle'")).length === 0
  })
  const [refused, granted] = await Promise.allSettled([hold(store, claimOf('used up')), hold(store, claimOf('beside'))])
  expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
  expect(granted).toMatchObject({ status: 'fulfilled' })
})

test('a server whose sysdate() does not move within a statement is refused', async () => {
  await using still = await startMariaDb({ config: { sysdate_is_now: 'on' } })
  await using refused = storeAt(still.url())
  expect(await failureOf(hold(refused, claimOf('a')))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/sysdate-is-now/),
  })
})
