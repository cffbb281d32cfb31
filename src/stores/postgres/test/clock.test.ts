import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { clockSteps, HOUR, wakesAfterStep } from '../../wire/test/clock-steps.ts'
import { advisory } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt } from './support.ts'

let clock: ShiftedClock
let server: PostgresServer
let store: Store
let other: Store

beforeAll(async () => {
  clock = startClock()
  server = await startPostgres({ clock })
  store = storeAt(server.url())
  other = storeAt(server.url())
  await hold(store, claimOf('warm'))
})
afterAll(async () => {
  await Promise.all([store, other].map(each => each[Symbol.asyncDispose]()))
  await server.stop()
  clock.stop()
})

test.each([-HOUR, HOUR, -3 * HOUR])('tokens rise although the clock of the server was set by %i ms', async jump => {
  await using locks = advisory(new Pool({ connectionString: server.url() }))
  for (const each of [store, locks]) {
    const claim = claimOf('rising')
    const before = await hold(each, claim)
    await each.release(claim, signal)
    clock.jumpWall(jump)
    const again = claimOf('rising')
    expect(await hold(each, again)).toBeGreaterThan(before)
    await each.release(again, signal)
  }
})

test('a token falls only if its row is lost and the clock is then behind the last grant', async () => {
  await using locks = advisory(new Pool({ connectionString: server.url() }))
  for (const [each, table] of [[store, 'lease'] as const, [locks, 'lease_token'] as const]) {
    const take = async (): Promise<bigint> => {
      const claim = claimOf('falling')
      const token = await hold(each, claim)
      await each.release(claim, signal)
      return token
    }
    const lose = (): Promise<unknown> => server.query(`delete from holdfast.${table} where name = 'falling'`)
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
  }
})

test.each([1, 2])(
  'R4: a lease that was released after its end stays over when the clock is set back (limit %i)',
  async limit => {
    const claim = claimOf(`over ${limit}`, { ttl: 1_000, limit })
    await hold(store, claim)
    await until('its lease ends', async () => (await look(store, { name: claim.name })).length === 0)
    expect(await store.release(claim, signal)).toBe('gone')
    clock.jumpWall(-900)
    expect(await store.renew(claim, signal)).toBe(undefined)
    expect(await look(other, { name: claim.name })).toEqual([])
    clock.jumpWall(900)
  },
)

test('a break outranks the holder although the clock was set back', async () => {
  const token = await hold(store, claimOf('broken'))
  clock.jumpWall(-HOUR)
  expect(await store.break('broken', { by: 'test' }, signal)).toBe(token + 1n)
})

clockSteps(() => ({ store, clock }))
wakesAfterStep(() => ({ stores: [store, other], clock }))

test('no step of the clock ends or prolongs an advisory lock', async () => {
  const pool = new Pool({ connectionString: server.url() })
  await using one = advisory(pool, { ttl: 2_000 })
  await using two = advisory(pool, { ttl: 2_000 })
  const claim = claimOf('unmoved', { ttl: 2_000 })
  const token = await hold(one, claim)
  for (const jump of [HOUR, -2 * HOUR, HOUR]) {
    clock.jumpWall(jump)
    expect(await one.renew(claim, signal)).toMatchObject({ token })
    expect(await acquire(two, claimOf('unmoved', { ttl: 2_000 }))).toMatchObject({ held: false })
  }
  await one.release(claim, signal)
  await hold(two, claimOf('unmoved', { ttl: 2_000 }))
})

test('a name whose token cannot rise is refused, and other names in the batch are not', async () => {
  await server.query(
    `insert into holdfast.lease (name, token, ttl, expires_at) values ('used up', ${Number.MAX_SAFE_INTEGER}, 0, to_timestamp(0))`,
  )
  const [refused, granted] = await Promise.allSettled([hold(store, claimOf('used up')), hold(store, claimOf('beside'))])
  expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
  expect(granted).toMatchObject({ status: 'fulfilled' })
  expect(await failureOf(hold(store, claimOf('used up')))).toMatchObject({
    message: expect.stringMatching(/^the name has used up its tokens/),
  })
})
