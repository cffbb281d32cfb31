import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { createLocks } from '../../index.ts'
import { postgres } from '../../stores/postgres/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

const INSERT = 'insert into entry (token) values (1)'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
  await postgresFence(pool, { leases: true }).install()
  await pool.query('create table entry (token bigint not null)')
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

test.each(['repeatable read', 'serializable'])(
  'a mark raised meanwhile fails a %s transaction, to be tried again',
  async level => {
    const fence = postgresFence(pool, { resource: level })
    await fence.touch(holder('any', 5))
    const client = await pool.connect()
    await client.query(`begin isolation level ${level}; select`)
    await fence.touch(holder('any', 6))
    expect(await failureOf(fence.check(holder('any', 5), client))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/serialize/),
    })
    await client.query('rollback')
    client.release()
  },
)

test('a fence that also checks leases blocks other grants until the transaction ends, and refuses a lease that is over', async () => {
  await using locks = createLocks(postgres(pool, { create: true }), { ttl: 2_000, heartbeat: false })
  const fence = postgresFence(pool, { leases: true })
  await fence.install()
  const lease = await locks.acquire('guarded')
  // Its name and token: a lease that is over in this process is refused before its row is asked.
  const { name, token } = lease
  const other = { name, token }
  await fence.transaction(other, async client => {
    await until(
      'the lease has run out',
      async () => lease.remaining === 0 && !(await locks.inspect('guarded')).holders[0],
    )
    expect(await locks.tryAcquire('guarded')).toBeUndefined()
    await client.query(INSERT)
  })
  expect(await failureOf(fence.transaction(other, async () => {}))).toMatchObject({
    code: 'LEASE_LOST',
    leaseName: 'guarded',
  })
  await using next = await locks.acquire('guarded', { ttl: 10_000 })
  await expect(fence.transaction(other, async () => {})).rejects.toEqual(stale(lease.token, next.token))
  await fence.touch(next)
  expect(await server.query('select from entry')).toHaveLength(1)
})

test('a fence that also checks leases keeps the slots of a permit until its transaction ends, and no others', async () => {
  await using locks = createLocks(postgres(pool, { create: true }), { heartbeat: false })
  const fence = postgresFence(pool, { leases: true })
  await fence.install()
  const semaphore = locks.semaphore('guarded permits', { limit: 2 })
  const permit = await semaphore.acquire()
  const { name, token, limit, slots } = permit
  const shown = { name, token, limit, slots }
  await fence.transaction(shown, async client => {
    expect(await permit.release()).toBe('released')
    await using other = await semaphore.acquire()
    expect(other.slots).toEqual([1])
    expect(await semaphore.tryAcquire()).toBeUndefined()
    expect(await locks.tryAcquire(name)).toBeUndefined()
    await client.query(INSERT)
  })
  // As if the clock of the server had been set back since the release.
  await server.query(
    "update holdfast.lease_shared set expires_at = clock_timestamp() + interval '1 minute' where ttl = 0",
  )
  expect(await failureOf(fence.transaction(shown, async () => {}))).toMatchObject({
    code: 'LEASE_LOST',
    leaseName: name,
  })
  await using next = await semaphore.acquire()
  expect(next.slots).toEqual([0])
  await fence.touch(next)
  await using reading = await locks.readWrite('guarded reader').reader.acquire()
  await fence.touch({ name: 'guarded reader', token: reading.token, limit: reading.limit, slots: reading.slots })
})
