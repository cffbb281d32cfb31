import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim } from '../../../contract/store.ts'
import { acquire, claimOf, hold, queryAt, signal, storeAt, transaction } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** From now on the commit of a new position waits, until the end of this transaction. */
async function holdCommits(): Promise<Awaited<ReturnType<typeof transaction>>> {
  await queryAt(
    server.url(),
    `drop function if exists wait cascade;
    create function wait() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); return null; end';
    create constraint trigger late after insert on holdfast.lease_line deferrable initially deferred
      for each row execute function wait()`,
  )
  return transaction(server, 'select pg_advisory_xact_lock(7)')
}

/** Waits until another session waits for a lock of this type. */
async function untilWaiting(held: Awaited<ReturnType<typeof transaction>>, type: string): Promise<void> {
  const waits = `select 1 from pg_locks where locktype = '${type}' and not granted`
  await until(`a session waits for a lock: ${type}`, async () => (await held.query(waits)).length > 0)
}

test('a waiter whose position is not committed when the name is released is woken', async () => {
  await using store = storeAt(server.url())
  const [holder, first] = [claimOf('a'), claimOf('other', { queue: true })]
  await hold(store, claimOf('other'))
  await acquire(store, first)
  await store.watch?.(first, () => {}, signal) // from now on the store is subscribed
  await hold(store, holder)
  const waiter = claimOf('a', { queue: true })

  const held = await holdCommits()
  const asked = acquire(store, waiter)
  await untilWaiting(held, 'advisory')
  await using other = storeAt(server.url())
  expect(await other.release(holder, signal)).toBe('released')
  await held.end()
  expect(await asked).toMatchObject({ held: false, listens: true, kept: true })
  let isWoken = false
  await store.watch?.(waiter, () => (isWoken = true), signal)
  await until('it is woken', () => isWoken)
  expect(await acquire(store, waiter)).toMatchObject({ held: true })
})

test('R4: a release of a claim whose position is not committed ends it', async () => {
  await using store = storeAt(server.url())
  await using other = storeAt(server.url())
  const [claim, next] = [claimOf('crossing', { queue: true }), claimOf('crossing', { queue: true, limit: 2 })]
  await hold(store, claimOf('crossing', { limit: 2 }))
  const held = await holdCommits()
  const asked = acquire(store, claim)
  await untilWaiting(held, 'advisory')
  const released = other.release(claim, signal)
  await untilWaiting(held, 'transactionid')
  await held.end()
  expect(await asked).toMatchObject({ held: false })
  expect(await released).toBe('released')
  expect(await other.release(claim, signal)).toBe('gone')
  expect(await acquire(store, next)).toMatchObject({ held: true })
})

test('a waiter whose position was there before its request need not ask again', async () => {
  await using store = storeAt(server.url())
  const waiter = claimOf('b', { queue: true })
  await hold(store, claimOf('b'))
  await acquire(store, waiter)
  await store.watch?.(waiter, () => {}, signal)
  expect(await acquire(store, waiter)).toMatchObject({ held: false, listens: true, kept: true })
})

test('positions and withdrawals that lapsed are deleted while others wait', async () => {
  await using store = storeAt(server.url())
  const waiter = claimOf('c', { queue: true })
  await hold(store, claimOf('c'))
  await server.query(`insert into holdfast.lease_line (name, id, owner, note, lapses_at, gone)
    select 'c', i::text, '', '', now() - interval '1 s', i % 2 = 0 from generate_series(1, 500) i`)
  await acquire(store, waiter)
  await store.watch?.(waiter, () => {}, signal)
  const left = (): Promise<unknown[]> => server.query("select id from holdfast.lease_line where name = 'c'")
  await until('they are deleted', async () => (await left()).length === 1)
  expect(await left()).toEqual([{ id: waiter.id }])
})

test.each([0, 1])('R8: a newcomer passes no waiter that lives, behind %i others and 1,500 that died', async before => {
  await using store = storeAt(server.url())
  const name = `died ${before}`
  await hold(store, claimOf(name))
  const waiters = Array.from({ length: before + 1 }, () => claimOf(name, { queue: true, ttl: 60_000 }))
  for (const waiter of waiters) await acquire(store, waiter)
  // The name is free, and the grace period of its first waiter is over.
  await server.query(
    `update holdfast.lease set id = null, ttl = 0, expires_at = now() - interval '2 s' where name = $1`,
    [name],
  )
  await server.query('update holdfast.lease_line set seq = seq - 1000000 where name = $1 and id <> $2', [
    name,
    waiters.at(-1)?.id,
  ])
  await server.query(
    `insert into holdfast.lease_line (name, id, seq, owner, note, lapses_at, gone)
    select $1, i::text, -i, '', '', now() - interval '1 s', false from generate_series(1, 1500) i`,
    [name],
  )
  expect(await acquire(store, claimOf(name))).toMatchObject({ held: false, ahead: before + 1 })
  await until('the last waiter is served', async () => (await acquire(store, waiters.at(-1) as Claim)).held)
})

test('a lapsed position that is locked does not begin the grace period of the first waiter again', async () => {
  await using store = storeAt(server.url())
  await hold(store, claimOf('locked'))
  await acquire(store, claimOf('locked', { queue: true, ttl: 60_000 })) // it never asks again
  // The name is free, and the grace period is over.
  const free = `update holdfast.lease set id = null, ttl = 0, expires_at = now() - interval '2 s' where name = 'locked'`
  await server.query(free)
  await server.query(`insert into holdfast.lease_line (name, id, seq, owner, note, lapses_at, gone)
    select 'locked', i::text, i - 3, '', '', now() - interval '1 s', false from generate_series(1, 2) i`)
  const locked = await transaction(
    server,
    `select from holdfast.lease_line where name = 'locked' and id = '1' for update`,
  )
  // The other lapsed one is deleted, so the waiter became the first just now.
  const claim = claimOf('locked')
  expect(await acquire(store, claim)).toMatchObject({ held: false, ahead: 1 })
  await server.query(free)
  expect(await acquire(store, claim)).toMatchObject({ held: true })
  await locked.end()
})

test('a claim that joins the queue behind a grant that it did not see keeps the order', async () => {
  await using store = storeAt(server.url())
  const [holder, second] = [claimOf('d'), claimOf('d')]
  const waiter = claimOf('d', { queue: true })
  const token = await hold(store, holder)
  // Its position waits for another transaction that inserts the same one, after the refusal was decided.
  const same = `insert into holdfast.lease_line (name, id, owner, note, lapses_at, gone) values ($1, $2, '', '', now(), false)`
  const inserted = await transaction(server, same, ['d', waiter.id])
  await using other = storeAt(server.url())
  const asked = acquire(other, waiter)
  await until('its position waits', async () => {
    const waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'"
    return (await server.query(waits, [waiter.id])).length > 0
  })
  const broken = (await store.break('d', { by: 'test' }, signal)) as bigint
  expect(await hold(store, second)).toBeGreaterThan(broken)
  await inserted.end('rollback')
  // The holder is that of before the break. The core is told to ask again (`listens`), because it may have missed a wake.
  expect(await asked).toMatchObject({ held: false, ahead: 0, listens: false, holder: { token } })

  const later = claimOf('d', { queue: true })
  expect(await acquire(store, later)).toMatchObject({ held: false, ahead: 1 })
  let isWoken = false
  await other.watch?.(waiter, () => (isWoken = true), signal)
  await store.release(second, signal)
  await until('it is woken', () => isWoken)
  expect(await acquire(store, claimOf('d'))).toMatchObject({ held: false, ahead: 2 })
  expect(await acquire(other, waiter)).toMatchObject({ held: true })
})

test.each([1, 2])('R8: a position of limit %i that a release ends at that moment grants nothing', async limit => {
  await using store = storeAt(server.url())
  await using other = storeAt(server.url())
  const name = `left ${limit}`
  const [holder, waiter, next] = [false, true, true].map(queue => {
    return claimOf(name, { limit, units: limit, queue, ttl: 60_000 })
  }) as [Claim, Claim, Claim]
  for (const claim of [holder, waiter, next]) await acquire(store, claim)
  await store.release(holder, signal)
  // The grace period of the waiter is over. That of the next one begins when the waiter leaves.
  await server.query('delete from holdfast.lease_shared where name = $1', [name])
  await server.query(`update holdfast.lease set expires_at = now() - interval '2 s' where name = $1`, [name])

  // The release waits after the statement that deletes the position.
  await queryAt(
    server.url(),
    `drop function if exists leave cascade;
    create function leave() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(8); return null; end';
    create trigger leaves after delete on holdfast.lease_line for each row execute function leave()`,
  )
  const held = await transaction(server, 'select pg_advisory_xact_lock(8)')
  const waiting = async (verb: string): Promise<boolean> => {
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${verb}_one%'`
    return (await server.query(waits)).length > 0
  }
  const released = other.release(waiter, signal)
  await until('the release waits', () => waiting('release'))
  const asked = acquire(store, waiter)
  await until('the claim waits for it', () => waiting('acquire'))
  await held.end()
  expect(await released).toBe('released')
  expect(await asked).toMatchObject({ held: false, ahead: 1 })
  expect(await acquire(store, next)).toMatchObject({ held: true })
})

test.each([
  [0, 1],
  [1, 0],
])('a claim passes the first waiter while one batch releases both, in the order %i, %i', async (...order) => {
  await using store = storeAt(server.url())
  await using other = storeAt(server.url())
  const name = `both ${order[0]}`
  const [holder, first, own] = [false, true, true].map(queue => claimOf(name, { queue, ttl: 60_000 })) as [
    Claim,
    Claim,
    Claim,
  ]
  for (const claim of [holder, first, own]) await acquire(store, claim)
  await store.release(holder, signal)
  await server.query(`update holdfast.lease set expires_at = now() - interval '2 s' where name = $1`, [name])

  // The grant waits when it has locked what it needs of the queue.
  await queryAt(
    server.url(),
    `drop function if exists granted cascade;
    create function granted() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(9); return new; end';
    create trigger grants before update on holdfast.lease for each row when (new.id is not null) execute function granted()`,
  )
  const held = await transaction(server, 'select pg_advisory_xact_lock(9)')
  const waiting = async (verb: string): Promise<boolean> => {
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${verb}%' and pid <> pg_backend_pid()`
    return (await server.query(waits)).length > 0
  }
  const asked = acquire(store, own)
  await until('the grant waits', () => waiting('acquire_one'))
  const both = [first, own]
  const released = Promise.all(order.map(index => other.release(both[index] as Claim, signal)))
  await until('the releases wait', () => waiting('release'))
  await held.end()
  await queryAt(server.url(), 'drop function granted cascade')
  expect(await asked).toMatchObject({ held: true })
  expect(await released).toEqual(['released', 'released'])
})

test.each([
  ['of two names that the database sorts otherwise', ['a', 'B'], 'B'],
  ['of one name, the last one first', ['c', 'c'], 'c'],
])('batches of acquires and of releases lock positions in one order, %s', async (_, names, locked) => {
  await server.query('drop database if exists sorted with (force)')
  await server.query("create database sorted locale_provider icu icu_locale 'en-US' locale 'C' template template0")
  const url = (): string => server.url().replace(/postgres$/, 'sorted')
  await using store = storeAt(url())
  await using other = storeAt(url())
  const waiters = names.map(name => claimOf(name, { queue: true, ttl: 60_000 }))
  for (const name of new Set(names)) await hold(store, claimOf(name))
  for (const waiter of waiters) await acquire(store, waiter)
  await queryAt(url(), `update holdfast.lease_line set lapses_at = now() + interval '3 s'`) // each is written again
  const first = `select from holdfast.lease_line where name = '${locked}' order by seq limit 1 for update`
  const held = await transaction({ url }, first)
  const isWaiting = async (verb: string): Promise<boolean> => {
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${verb}%' and pid <> pg_backend_pid()`
    return (await server.query(waits)).length > 0
  }
  const released = Promise.all(waiters.map(waiter => other.release(waiter, signal)))
  await until('the releases wait', () => isWaiting('release'))
  const inOrder = names[0] === names[1] ? waiters.toReversed() : waiters
  const asked = Promise.all(inOrder.map(waiter => acquire(store, waiter)))
  await until('the acquires wait', () => isWaiting('acquire'))
  await held.end()
  const refused = { held: false }
  expect(await Promise.all([released, asked])).toMatchObject([
    ['released', 'released'],
    [refused, refused],
  ])
})
