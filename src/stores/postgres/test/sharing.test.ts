import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { type Claim, type Grant, LARGEST_LIMIT, type Store } from '../../../contract/store.ts'
import { acquire, claimOf, failureOf, look, queryAt, signal, storeAt, transaction } from './support.ts'

let server: PostgresServer
let stores: readonly Store[]

beforeAll(async () => {
  server = await startPostgres()
  stores = Array.from({ length: 4 }, () => storeAt(server.url()))
  for (const store of stores) await look(store, { prefix: '' })
})
afterAll(async () => {
  await Promise.all(stores.map(store => store[Symbol.asyncDispose]()))
  await server.stop()
})

const storeOf = (index: number): Store => stores[index % stores.length] as Store

test.each([100, LARGEST_LIMIT])(
  'R1: 100 claims of limit %i that come at once through 4 connections share no slot',
  async limit => {
    const name = `at once ${limit}`
    const grants = await Promise.all(
      Array.from({ length: 100 }, (_, index) => acquire(storeOf(index), claimOf(name, { limit }))),
    )
    const slots = grants.flatMap(grant => (grant.held ? (grant.slots ?? [0]) : []))
    expect(slots.toSorted((one, two) => one - two)).toEqual(Array.from({ length: 100 }, (_, slot) => slot))
    expect(new Set(grants.map(grant => grant.held && grant.token)).size).toBe(100)
    if (limit === 100) expect(await acquire(storeOf(0), claimOf(name, { limit }))).toMatchObject({ held: false })
  },
)

test('R4: a permit is not called gone while a renewal that is not committed has its row', async () => {
  const [store, claim] = [storeOf(0), claimOf('uncommitted', { limit: 2, ttl: 600 })]
  await acquire(store, claim)
  const renewal = await transaction(
    server,
    "update holdfast.lease_shared set expires_at = clock_timestamp() + interval '30 s' where name = $1",
    [claim.name],
  )
  await until('it has ended', async () => (await look(store, { name: claim.name })).length === 0)
  expect(await failureOf(store.release(claim, signal))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  await renewal.end()
  expect(await store.release(claim, signal)).toBe('released')
})

test('R1: a name whose row is deleted while a reader waits for it is not held without a row', async () => {
  const store = storeOf(0)
  for (let round = 0; round < 20; round += 1) {
    const name = `deleted ${round}`
    await server.query(`insert into holdfast.lease (name, token, ttl, expires_at) values ($1, 0, 0, to_timestamp(0))`, [
      name,
    ])
    const deletes = await transaction(server, 'delete from holdfast.lease where name = $1', [name])
    let isAnswered = false
    const reads = acquire(store, claimOf(name, { limit: LARGEST_LIMIT })).finally(() => (isAnswered = true))
    await until('it waits, or has waited for too long', async () => {
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%acquire%' and pid <> pg_backend_pid()`
      return isAnswered || (await server.query(waits)).length > 0
    })
    await deletes.end()
    const reader = await reads
    expect(await acquire(store, claimOf(name))).toMatchObject({ held: !reader.held })
  }
})

test('R1: locks, permits and readers that race for a name never hold it against the limit of another', async () => {
  const holding = new Map<string, { readonly claim: Claim; readonly slots: readonly number[] }>()
  const tokens = new Set<bigint>()
  let [alone, shared] = [0, 0]
  const enter = (claim: Claim, { token, slots = [0] }: Grant): void => {
    expect(tokens.has(token)).toBe(false)
    tokens.add(token)
    holding.set(claim.id, { claim, slots })
    const used = [...holding.values()].flatMap(each => each.slots)
    expect(new Set(used).size, `${used}`).toBe(used.length)
    for (const each of holding.values()) expect(Math.max(...used)).toBeLessThan(each.claim.limit ?? 1)
  }
  const work = async (index: number): Promise<void> => {
    const [limit, units] = (
      [
        [1, 1],
        [3, 1],
        [3, 2],
        [LARGEST_LIMIT, 1],
      ] as const
    )[index % 4] as readonly [number, number]
    while (alone < 10 || shared < 50) {
      const claim = claimOf('raced', { limit, units })
      const answer = await acquire(storeOf(index >> 2), claim)
      if (!answer.held) continue
      enter(claim, answer)
      if (limit === 1) alone += 1
      else shared += 1
      await new Promise(resolve => setImmediate(resolve))
      holding.delete(claim.id)
      await storeOf(index).release(claim, signal)
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, index) => work(index)))
})

test('a permit that is renewed while others are granted and released keeps its slot and its token', async () => {
  const claim = claimOf('renewed', { limit: 8 })
  const granted = await acquire(storeOf(0), claim)
  const others = async (index: number): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) {
      const other = claimOf('renewed', { limit: 8 })
      expect(await acquire(storeOf(index), other)).toMatchObject({ held: true })
      await storeOf(index).release(other, signal)
    }
  }
  const done = Promise.all([1, 2, 3].map(others))
  for (let turn = 0; turn < 40; turn += 1) expect(await storeOf(0).renew(claim, signal)).toEqual(granted)
  await done
  await storeOf(0).release(claim, signal)
})

test('a renewal and a release of a permit do not wait for the row of the name', async () => {
  const [one, two] = [claimOf('apart', { limit: 3 }), claimOf('apart', { limit: 3 })]
  for (const claim of [one, two]) await acquire(storeOf(0), claim)
  const locked = await transaction(server, 'select from holdfast.lease where name = $1 for update', ['apart'])
  expect(await storeOf(0).renew(one, signal)).toMatchObject({ held: true })
  expect(await storeOf(0).annotate({ ...one, note: 'new' }, signal)).toBe(true)
  expect(await storeOf(0).release(two, signal)).toBe('released')
  await locked.end()
})

test('a claim for a slot waits in turn for the row of its name, and is granted', async () => {
  await acquire(storeOf(0), claimOf('in turn', { limit: 3 }))
  const locked = await transaction(server, 'select from holdfast.lease where name = $1 for update', ['in turn'])
  const asked = acquire(storeOf(1), claimOf('in turn', { limit: 3 }))
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%acquire_one%'"
  await until('it waits', async () => (await server.query(waiting)).length > 0)
  await locked.end()
  expect(await asked).toMatchObject({ slots: [1] })
})

test('a renewal that hangs does not bring back a permit that was released meanwhile', async () => {
  const claim = claimOf('brought back', { limit: 2 })
  await acquire(storeOf(0), claim)
  const locked = await transaction(server, 'lock table holdfast.lease in access exclusive mode')
  const renewed = storeOf(0).renew(claim, signal)
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%_renew_%'"
  await until('it hangs', async () => (await server.query(waiting)).length > 0)
  const released =
    "update holdfast.lease_shared set ttl = 0, expires_at = clock_timestamp() where name = 'brought back'"
  await locked.query(released) // as a release does it
  await locked.end()
  expect(await renewed).toBeUndefined()
  expect(await look(storeOf(0), { name: 'brought back' })).toEqual([])
})

test('R4: an acquire that hangs does not bring back a permit that was released meanwhile', async () => {
  const claim = claimOf('acquired again', { limit: 2 })
  const first = await acquire(storeOf(0), claim)
  // The claim reads that it holds, and waits before it writes.
  const locked = await transaction(server, 'lock table holdfast.lease_shared in share row exclusive mode')
  const again = acquire(storeOf(0), claim)
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%acquire_one%'"
  await until('it hangs', async () => (await server.query(waiting)).length > 0)
  const released =
    "update holdfast.lease_shared set ttl = 0, expires_at = clock_timestamp() where name = 'acquired again'"
  await locked.query(released) // as a release does it
  await locked.end()
  const granted = await again
  expect(granted.held && first.held && granted.token > first.token).toBe(true)
  await storeOf(0).release(claim, signal)
})

test.each([1, 2])(
  'R6: a request that hung does not shorten a lease of limit %i that was granted meanwhile',
  async limit => {
    const name = `hung ${limit}`
    const locked = await transaction(server, 'lock table holdfast.lease_line in share row exclusive mode')
    const kept = server.query(`select holdfast.lease_keep_2('${name}', 1000, 'nobody')`)
    const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%lease_keep%'"
    await until('it hangs', async () => (await server.query(waiting)).length > 0)
    await server.query('select pg_sleep(0.1)')
    expect(await acquire(storeOf(0), claimOf(name, { limit }))).toMatchObject({ held: true })
    const ends = `select expires_at::text from holdfast.lease${limit > 1 ? '_shared' : ''} where name = '${name}'`
    const before = await server.query(ends)
    await locked.end()
    await kept
    expect(before).toHaveLength(1)
    expect(await server.query(ends)).toEqual(before)
  },
)

test('R9: a writer is woken although a release that began later was committed first', async () => {
  const permits = [claimOf('crossed', { limit: 2 }), claimOf('crossed', { limit: 2 })]
  const writer = claimOf('crossed', { queue: true })
  for (const claim of [...permits, writer]) await acquire(storeOf(0), claim)
  const listening = new Client({ connectionString: server.url() })
  await listening.connect()
  const messages: (string | undefined)[] = []
  listening.on('notification', ({ payload }) => messages.push(payload))
  const [{ channel }] = (await server.query(`select channel from holdfast.lease_line where id = '${writer.id}'`)) as [
    { channel: string },
  ]
  await listening.query(`listen "${channel}"`)
  // The first release waits before it writes.
  const locked = await transaction(server, 'lock table holdfast.lease_shared in share row exclusive mode')
  const released = storeOf(1).release(permits[0] as Claim, signal)
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%release_one%'"
  await until('it hangs', async () => (await server.query(waiting)).length > 0)
  const second = `update holdfast.lease_shared set ttl = 0, expires_at = clock_timestamp() where id = '${permits[1]?.id}'`
  await locked.query(second) // as a release does it
  await locked.end()
  expect(await released).toBe('released')
  await listening.query('select') // what was sent before has arrived
  expect(messages).toEqual([writer.id])
  await listening.end()
  await storeOf(0).release(writer, signal)
})

test('claims for slots of a name that a transaction has locked do not wait one after the other', async () => {
  const claims = Array.from({ length: 100 }, () => claimOf('guarded', { limit: 100, ttl: 15_000 }))
  await acquire(storeOf(0), claimOf('guarded', { limit: 100 }))
  const locked = await transaction(server, 'select from holdfast.lease where name = $1 for key share', ['guarded'])
  const answers = await Promise.all(claims.map(claim => acquire(storeOf(0), claim)))
  expect(answers.filter(({ held }) => held)).toEqual([])
  await locked.end()
})

test('a claim that may pass a waiter soon is not told to ask when the waiter lapses, although the name is locked', async () => {
  const [permit, waiter] = [claimOf('unknown since', { limit: 2 }), claimOf('unknown since', { queue: true })]
  for (const claim of [permit, waiter]) await acquire(storeOf(0), claim)
  const locked = await transaction(server, 'select from holdfast.lease where name = $1 for key share', [
    'unknown since',
  ])
  await storeOf(0).release(permit, signal)
  const answer = await acquire(storeOf(1), claimOf('unknown since'))
  expect(answer.held || answer.retryAfter).toBeLessThan(1_000)
  await locked.end()
  await storeOf(0).release(waiter, signal)
})

test.each([1, 2])('a waiter of limit %i keeps its position while a guard has locked the free name', async limit => {
  const name = `kept ${limit}`
  const [holder, waiter] = [claimOf(name, { limit, units: limit }), claimOf(name, { limit, units: limit, queue: true })]
  for (const claim of [holder, waiter]) await acquire(storeOf(0), claim)
  const guard = await transaction(server, 'select from holdfast.lease where name = $1 for key share', [name])
  await storeOf(0).release(holder, signal)
  const ageing = "update holdfast.lease_line set lapses_at = clock_timestamp() + interval '3 s' where id = "
  await server.query(`${ageing} '${waiter.id}'`)
  expect(await acquire(storeOf(0), waiter)).toMatchObject({ held: false })
  expect((await look(storeOf(0), { name }))[0]?.remaining).toBeGreaterThan(3_000)
  await guard.end()
})

test('a permit that expired while its renewal is carried out is not granted to another', async () => {
  const [claim, other] = [claimOf('expiring', { limit: 2, ttl: 1_500 }), claimOf('expiring', { limit: 2 })]
  const granted = await acquire(storeOf(0), claim)
  await acquire(storeOf(0), other)
  const renewed = await transaction(
    server,
    "update holdfast.lease_shared set expires_at = clock_timestamp() + interval '1 min' where id = $1",
    [claim.id],
  )
  await new Promise(resolve => setTimeout(resolve, 1_700))
  const next = claimOf('expiring', { limit: 2 })
  expect(await acquire(storeOf(1), next)).toMatchObject({ held: false })
  await renewed.end()
  expect(await acquire(storeOf(1), next)).toMatchObject({ held: false })
  expect(await storeOf(0).renew(claim, signal)).toMatchObject({ token: (granted as Grant).token })
})

test.each(['repeatable read', 'serializable'])('a role whose transactions are %s is refused', async level => {
  const role = level.replace(' ', '_')
  await queryAt(
    server.url(),
    `drop role if exists ${role}; create role ${role} login superuser;
    alter role ${role} set default_transaction_isolation to '${level}'`,
  )
  await using store = storeAt(server.url(role))
  for (const limit of [1, 2])
    expect(await failureOf(acquire(store, claimOf('isolated', { limit })))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
})
