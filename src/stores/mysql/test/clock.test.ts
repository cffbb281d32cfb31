import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { clockSteps, HOUR } from '../../wire/test/clock-steps.ts'
import { claimOf, failureOf, hold, look, signal, storeAt } from './support.ts'

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

clockSteps(() => ({ store, clock }))

test('a token that cannot rise any more is refused, and its neighbours are not, even when idle rows are deleted', async () => {
  const last = Number.MAX_SAFE_INTEGER
  const idle = `insert into holdfast_lease values ('idle', '[]', 7, 0, 0, 1)`
  await server.query(`${idle}, ('used up', '[]', ${last}, 0, 0, 1)`)
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
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/sysdate-is-now/),
  })
})
