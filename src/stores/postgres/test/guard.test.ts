import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt, transaction } from './support.ts'

// As the documentation says it.
const page = readFileSync(join(import.meta.dirname, '../../../../docs/fencing/postgres.md'), 'utf8')
const [, text = ''] = /^(select from holdfast\.lease.*?;)$/ms.exec(page) ?? []
const guard = text.replace("'reports'", '$2')

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** Ends a lease now, without a wait for its ttl. */
async function runOut(name: string): Promise<void> {
  await server.query(`update holdfast.lease set expires_at = clock_timestamp() where name = '${name}'`)
}

test('a guard does not block the renewals of the holder', async () => {
  const locks = createLocks(storeAt(server.url()))
  const lease = await locks.acquire('renewed')
  const guarded = await transaction(server, guard, [lease.token, lease.name])
  expect(guarded.rowCount).toBe(1)
  expect(await lease.extend(60_000)).toBeGreaterThan(50_000)
  await lease.release()
  await guarded.end()
  await locks.close()
})

test('a guarded name is neither granted nor broken, and no request waits for the guard', async () => {
  await using store = storeAt(server.url())
  const claim = claimOf('guarded')
  const token = await hold(store, claim)
  const guarded = await transaction(server, guard, [token, claim.name])
  const other = claimOf(claim.name)
  expect(await failureOf(store.break(claim.name, { by: 'test' }, signal))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    message: expect.stringMatching(/a transaction, such as one of a fence, has locked the row of "guarded"/),
  })
  await runOut(claim.name)
  expect(await look(store, { name: claim.name })).toEqual([])
  for (let tries = 0; tries < 5; tries += 1) expect(await acquire(store, other)).toMatchObject({ held: false })
  expect(await acquire(store, { ...other, queue: true })).toMatchObject({ held: false, retryAfter: 10 })
  await guarded.end()
  expect(await hold(store, other)).toBeGreaterThan(token)
})

test('a guard refuses a holder whose lease is over, was released, or was broken', async () => {
  await using store = storeAt(server.url())
  const [released, over, broken] = [claimOf('released'), claimOf('over'), claimOf('broken')]
  const tokens = await Promise.all([released, over, broken].map(claim => hold(store, claim)))
  await store.release(released, signal)
  await store.break(broken.name, { by: 'test' }, signal)
  await runOut(over.name)
  for (const [index, { name }] of [released, over, broken].entries()) {
    const guarded = await transaction(server, guard, [tokens[index], name])
    expect(guarded.rowCount, name).toBe(0)
    await guarded.end()
  }
})

test('a holder is notified in time when its row is locked', async () => {
  const locks = createLocks(storeAt(server.url()), { ttl: 1_500 })
  const lease = await locks.acquire('locked')
  const locked = await transaction(server, 'select from holdfast.lease where name = $1 for update', [lease.name])
  await until('the signal aborts', () => lease.signal.aborted)
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  await locked.end()
  await locks.close()
})

test('the slot of a guarded permit is not granted again until the guard ends, and the others are', async () => {
  await using store = storeAt(server.url())
  const permit = (): Claim => claimOf('permits', { limit: 2 })
  const [first, second] = [permit(), permit()]
  const token = await hold(store, first)
  const guardShared = `select from holdfast.lease_shared where name = $1 and token = $2 and expires_at > clock_timestamp() for key share`
  const guarded = await transaction(server, guardShared, [first.name, token])
  expect(guarded.rowCount).toBe(1)
  expect(await store.renew(first, signal)).toMatchObject({ token })
  expect(await failureOf(store.break(first.name, { by: 'test' }, signal))).toMatchObject({ retryable: true })
  expect(await acquire(store, second)).toMatchObject({ slots: [1] })
  expect(await store.release(first, signal)).toBe('released')
  expect(await acquire(store, permit())).toMatchObject({ held: false })
  expect(await store.release(second, signal)).toBe('released')
  expect(await acquire(store, second)).toMatchObject({ slots: [1] })
  await guarded.end()
  await hold(store, permit())
  expect((await look(store, { name: first.name })).map(({ slots = [0] }) => slots)).toEqual([[0], [1]])
})

test('a renewal and a release are retried while their row is locked', async () => {
  await using store = storeAt(server.url())
  const claim = claimOf('contended')
  const token = await hold(store, claim)
  for (const verb of ['renew', 'release'] as const) {
    const locked = await transaction(server, 'select from holdfast.lease where name = $1 for update', [claim.name])
    const asked = store[verb](claim, signal)
    await until('it was skipped', async () => {
      const done = "application_name = 'holdfast' and state = 'idle' and query like $1"
      return (await server.query(`select 1 from pg_stat_activity where ${done}`, [`%_${verb}_%`])).length > 0
    })
    await locked.end()
    expect(await asked).toEqual(verb === 'renew' ? { held: true, token, ttl: claim.ttl } : 'released')
  }
})
