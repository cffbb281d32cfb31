import { connect, type Socket } from 'node:net'
import { createPool } from 'mysql2'
import { expect, test } from 'vitest'
import { startMariaDb } from '../../../../lab/servers/mariadb.ts'
import type { Claim } from '../../../contract/store.ts'
import { mysql } from '../index.ts'
import { acquire, claimOf, hold, look, signal, storeAt } from './support.ts'

/** Waiters, each with 510 bytes of text: 2.5 MB. */
const MANY = 5_000

test('a renewal does not read the queue, and an acquire only its beginning, however long it is', async () => {
  await using server = await startMariaDb()
  await using other = storeAt(server.url())
  await hold(other, claimOf('first')) // creates the tables
  let received = 0
  const stream = (): Socket =>
    connect(server.port, server.host).on('data', ({ length }) => {
      received += length
    })
  await using store = mysql(createPool({ uri: server.url(), stream }))
  const holder = claimOf('crowded', { ttl: 60_000 })
  const token = await hold(store, holder)
  await server.query(`insert into app.holdfast_lease_line
    select x'${Buffer.from('crowded').toString('hex')}', concat('w', seq), repeat('o', 255), repeat('n', 255), seq,
      unix_timestamp() * 1000000 + 60000000, false, 9000, 1, 1, 100, false from app.seq_1_to_${MANY}`)

  const cost = async (work: () => Promise<unknown>): Promise<number> => {
    received = 0
    await work()
    return received
  }
  expect(await cost(() => store.renew(holder, signal))).toBeLessThan(10_000)
  expect(await cost(() => store.annotate({ ...holder, note: 'x' }, signal))).toBeLessThan(10_000)
  const last = claimOf('crowded', { queue: true })
  expect(await cost(() => acquire(store, last))).toBeLessThan(1_000_000)
  expect(await acquire(store, last)).toMatchObject({ held: false, ahead: 1_000 })
  await server.query('update app.holdfast_lease_line set lapses = unix_timestamp() * 1000000 + 60000000')
  const records = await look(other, { name: 'crowded' })
  expect(records).toHaveLength(MANY + 2)
  expect(records.at(-1)).toMatchObject({ state: 'waiting', position: MANY })
  expect(await store.release(last, signal)).toBe('released')
  expect(await store.renew(holder, signal)).toMatchObject({ token })
  expect(await cost(() => store.break('crowded', { by: 'me' }, signal))).toBeLessThan(10_000)
})

test('the rows of waiters that left are deleted, although the holder and the first waiter stay', async () => {
  await using server = await startMariaDb()
  await using store = storeAt(server.url())
  await hold(store, claimOf('patient', { ttl: 60_000 }))
  const waiter = (): Claim => claimOf('patient', { queue: true, ttl: 60_000 })
  await acquire(store, waiter())
  const rows = (): Promise<unknown[]> => server.query('select 1 from app.holdfast_lease_line')
  for (let left = 0; left < 3; left += 1) {
    const claim = waiter()
    await acquire(store, claim)
    expect(await store.release(claim, signal)).toBe('released')
  }
  expect(await rows()).toHaveLength(4)
  await server.query(
    'update app.holdfast_lease_line set lapses = lapses - 10000000 where gone or lapses <= unix_timestamp(now(6)) * 1000000',
  )
  await acquire(store, waiter())
  expect(await rows()).toHaveLength(2)
})

test('waiters that joined in the same microsecond keep their order', async () => {
  await using server = await startMariaDb()
  await using store = storeAt(server.url())
  await hold(store, claimOf('at once', { ttl: 60_000 }))
  const waiters = Array.from({ length: 50 }, () => claimOf('at once', { queue: true, ttl: 60_000 }))
  for (const waiter of waiters) await acquire(store, waiter)
  await server.query('update app.holdfast_lease_line set seq = 1')
  const sorted = waiters.toSorted((one, two) => (one.id < two.id ? -1 : 1))
  for (const waiter of waiters) expect(await acquire(store, waiter)).toMatchObject({ ahead: sorted.indexOf(waiter) })
})
