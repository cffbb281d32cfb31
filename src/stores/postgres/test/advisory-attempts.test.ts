import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { advisory } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** A store whose session is open. */
async function openAt(url: string): Promise<Store> {
  const store = advisory(new Pool({ connectionString: url }), { create: true })
  await look(store, { prefix: '' })
  return store
}

test('R6: an attempt that waits for the grant of an earlier one holds for a ttl from its own time', async () => {
  await using proxy = await startProxy(server)
  await using store = await openAt(server.urlBy(proxy.port))
  await using other = await openAt(server.url())
  const claim = claimOf('asked again', { ttl: 1_500 })
  proxy.down.hold()
  acquire(store, claim).catch(() => {}) // a busy machine may take longer than its 500 ms
  await sleep(400)
  const sent = performance.now()
  const second = acquire(store, claim)
  proxy.down.pass()
  expect(await second).toMatchObject({ held: true, ttl: 1_500 })
  const next = claimOf('asked again', { ttl: 300 })
  await until('it is passed on', async () => (await acquire(other, next)).held)
  expect(performance.now() - sent).toBeGreaterThanOrEqual(1_498)
})

test('R13: an attempt is granted although an earlier one, for which it waits, is given up', async () => {
  await using proxy = await startProxy(server)
  await using store = advisory(new Pool({ connectionString: server.urlBy(proxy.port) }), { create: true })
  const claim = claimOf('given up')
  const abort = new AbortController()
  proxy.up.hold()
  const first = failureOf(store.acquire(claim, abort.signal))
  const second = acquire(store, claim)
  abort.abort(new Error('no longer wanted'))
  proxy.up.pass()
  expect(await second).toMatchObject({ held: true })
  expect(await first).toMatchObject({ message: 'no longer wanted' })
})

test('R4: an attempt that has waited too long for an earlier one is not granted', async () => {
  await using proxy = await startProxy(server)
  await using store = await openAt(server.urlBy(proxy.port))
  const claim = claimOf('too late', { ttl: 1_500 })
  const abort = new AbortController()
  proxy.down.hold()
  store.acquire(claim, abort.signal).catch(() => {})
  const second = failureOf(acquire(store, claim))
  await sleep(600)
  abort.abort()
  proxy.down.pass()
  expect(await second).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('R13: a claim is granted although the release for which it waits fails', async () => {
  await using proxy = await startProxy(server)
  await using store = await openAt(server.urlBy(proxy.port))
  const held = claimOf('released in vain')
  await hold(store, held)
  const cut = proxy.cutAfterRequest('pg_advisory_unlock')
  const released = failureOf(store.release(held, signal))
  const next = acquire(store, claimOf('released in vain'))
  await cut
  expect(await released).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(await next).toMatchObject({ held: true })
})
