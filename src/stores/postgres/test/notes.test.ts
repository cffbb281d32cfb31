import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { annotate } from '../annotate.ts'
import { advisory } from '../index.ts'
import { namesOf } from '../names.ts'
import { withValues } from '../sql.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt, transaction } from './support.ts'

let server: PostgresServer
let store: Store

beforeAll(async () => {
  server = await startPostgres()
  store = storeAt(server.url())
})
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await server.stop()
})

/** A request that is carried out no later than `limit` ms from now. */
function statement(claim: Claim, limit: number): string {
  const order = { i: 0, ...claim, note: 'late', until: Date.now() + limit }
  return withValues(annotate(namesOf({})).replace('$0', 'null'), [JSON.stringify([order])])
}

/** What the server answers to it. */
async function late(claim: Claim, limit: number): Promise<unknown> {
  const [row] = await server.query<object>(statement(claim, limit))
  return JSON.parse(Object.values(row ?? {})[0])[1]
}

async function noteOf(each: Store, { name }: Claim): Promise<string | undefined> {
  return (await look(each, { name }))[0]?.note
}

const lock = 'lock table holdfast.lease in access exclusive mode'

async function oneWaits(): Promise<void> {
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock'"
  await until('it waits', async () => (await server.query(waiting)).length > 0)
}

test('a note changes nothing else of its row', async () => {
  const claim = claimOf('else')
  await hold(store, claim)
  const rows = (): Promise<object[]> => server.query("select * from holdfast.lease where name = 'else'")
  const [before] = await rows()
  await store.annotate({ ...claim, owner: 'another', ttl: 600_000, note: 'new', token: 5n }, signal)
  expect(await rows()).toEqual([{ ...before, note: 'new' }])
})

test('a note for a lease that was released does not delay the next claim', async () => {
  const [claim, next] = [claimOf('released', { limit: 2, units: 2 }), claimOf('released', { limit: 2 })]
  await hold(store, claim)
  await store.release(claim, signal)
  const noted = await transaction(server, statement(claim, 60_000))
  expect(await acquire(store, next)).toMatchObject({ held: true })
  await noted.end()
})

test('a note that arrives after its limit, or was delayed past it, is not written', async () => {
  const claim = claimOf('too late', { note: 'first' })
  await hold(store, claim)
  expect(await late(claim, -1)).toEqual([['late']])
  const locked = await transaction(server, lock)
  const answer = late(claim, 100)
  await oneWaits()
  await new Promise(resolve => setTimeout(resolve, 150))
  await locked.end()
  expect(await answer).toEqual([['late']])
  expect(await noteOf(store, claim)).toBe('first')
  expect(await late(claim, 10_000)).toEqual([['noted']])
})

test('a note whose lease expired while the note was delayed is not written', async () => {
  const claim = claimOf('ran out', { note: 'first' })
  await hold(store, claim)
  const locked = await transaction(server, lock)
  const answer = late(claim, 10_000)
  await oneWaits()
  await locked.query("update holdfast.lease set expires_at = clock_timestamp() where name = 'ran out'")
  await locked.end()
  expect((await answer) as string[][]).toEqual([[expect.stringMatching(/lost|skipped/)]])
  expect(await store.annotate({ ...claim, note: 'late' }, signal)).toBe(false)
  expect(await server.query("select note from holdfast.lease where name = 'ran out'")).toEqual([{ note: 'first' }])
})

test('a note is written during a guard, once no other transaction has locked the row', async () => {
  const claim = claimOf('contended')
  await hold(store, claim)
  const row = `select from holdfast.lease where name = '${claim.name}' for`
  const guarded = await transaction(server, `${row} key share`)
  expect(await store.annotate({ ...claim, note: 'guarded' }, signal)).toBe(true)
  await guarded.end()
  const locked = await transaction(server, `${row} update`)
  const [since] = (await locked.query('select clock_timestamp()::text as at')) as { at: string }[]
  const asked = store.annotate({ ...claim, note: 'last' }, signal)
  await until('it was skipped', async () => {
    const done = "state = 'idle' and query like '%note = o.note%' and query_start > $1::timestamptz"
    return (await server.query(`select from pg_stat_activity where ${done}`, [since?.at])).length > 0
  })
  await locked.end()
  expect(await asked).toBe(true)
  const always = await transaction(server, `${row} update`)
  const failed = await failureOf(store.annotate({ ...claim, note: 'in vain' }, signal))
  expect(failed).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/the row of "contended"/) })
  await always.end()
  expect(await noteOf(store, claim)).toBe('last')
})

test('a note wakes no waiter', async () => {
  const [holder, waiter] = [claimOf('asleep'), claimOf('asleep', { queue: true })]
  await hold(store, holder)
  await acquire(store, waiter)
  const wakes: (number | undefined)[] = []
  await store.watch?.(waiter, delay => wakes.push(delay), signal)
  await acquire(store, waiter)
  await store.annotate({ ...holder, note: 'new' }, signal)
  // Messages come in order.
  await server.query("select pg_notify(channel, id || ' 12345') from holdfast.lease_line where name = 'asleep'")
  await until('it is told', () => wakes.length > 0)
  expect(wakes).toEqual([12_345])
})

test('a stale note of an advisory lock is not written to the next lease of the name', async () => {
  await using proxy = await startProxy(server)
  await using one = advisory(new Pool({ connectionString: server.urlBy(proxy.port) }))
  await using two = advisory(new Pool({ connectionString: server.url() }))
  const claims = ['first', 'second', 'overtaken'].map(name => claimOf(name))
  for (const claim of claims) await hold(one, claim)
  proxy.down.hold()
  const notes: Promise<boolean>[] = []
  for (const claim of claims) {
    notes.push(one.annotate({ ...claim, note: 'late' }, signal)) // two are under way, the third waits for an answer
    await new Promise(setImmediate)
  }
  const released = one.release(claims[2] as Claim, signal)
  const next = claimOf('overtaken', { note: 'mine' })
  await until('it is passed on', async () => (await acquire(two, next)).held)
  proxy.down.pass()
  expect(await Promise.all(notes)).toEqual([true, true, false])
  expect(await released).toBe('released')
  expect(await noteOf(two, next)).toBe('mine')
})

test('a note of an advisory lock is refused after its session ended, and reports a missing row', async () => {
  await using one = advisory(new Pool({ connectionString: server.url() }))
  const claim = claimOf('ended', { note: 'first' })
  await hold(one, claim)
  await server.query("delete from holdfast.lease_token where name = 'ended'")
  expect(await failureOf(one.annotate({ ...claim, note: 'new' }, signal))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: 'another program deleted the row of "ended", so nothing was written: do not delete rows',
  })
  expect(await one.renew(claim, signal)).toMatchObject({ held: true })
  let lost = false
  one.onLoss?.(claim, () => (lost = true))
  await server.query("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")
  await until('it is told', () => lost)
  expect(await one.annotate({ ...claim, note: 'new' }, signal)).toBe(false)
})

test('a note that cannot be written to the table of tokens ends no lease', async () => {
  await using one = advisory(new Pool({ connectionString: server.url() }), { ttl: 3_000 })
  const claim = claimOf('kept', { ttl: 3_000, note: 'first' })
  await hold(one, claim)
  const locked = await transaction(server, 'lock table holdfast.lease_token in share mode')
  expect(await failureOf(one.annotate({ ...claim, note: 'new' }, signal))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await one.renew(claim, signal)).toMatchObject({ held: true })
  expect(await noteOf(one, claim)).toBe('first')
  await locked.end()
  expect(await one.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
  expect(await noteOf(one, claim)).toBe('new')
  expect(await acquire(one, claimOf('kept', { ttl: 3_000 }))).toMatchObject({ held: false, holder: { note: 'new' } })
})
