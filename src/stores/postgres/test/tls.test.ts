import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { type PostgresServer, startPostgres, unprivileged } from '../../../../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { advisory, type PostgresClient, postgres } from '../index.ts'
import { acquire, claimOf, failureOf, hold, signal } from './support.ts'

let server: PostgresServer
let proxy: TcpProxy
let url: string
let ca: string

beforeAll(async () => {
  const folder = newFolder('tls')
  const given = join(import.meta.dirname, '../../../../test/certificates')
  ca = readFileSync(join(given, 'ca.pem'), 'utf8')
  // It takes no key that others may read.
  const [key, cert] = [join(folder, 'server.key'), join(folder, 'server.pem')]
  for (const path of [key, cert]) writeFileSync(path, readFileSync(join(given, basename(path))), { mode: 0o600 })
  const user = unprivileged()
  if (user) for (const path of [folder, key, cert]) chownSync(path, user.uid, user.gid)
  server = await startPostgres({ config: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key } })
  proxy = await startProxy(server)
  url = `postgres://postgres@localhost:${proxy.port}/postgres`
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await server.stop()
})

const clients: Readonly<Record<string, (ssl: object | true) => { client: PostgresClient; end(): Promise<unknown> }>> = {
  'pg Pool'(ssl) {
    const client = new Pool({ connectionString: url, ssl })
    return { client, end: () => client.end() }
  },
  'postgres.js'(ssl) {
    const client = postgresJs(url, { ssl: ssl === true ? 'verify-full' : ssl })
    return { client, end: () => client.end({ timeout: 0 }) }
  },
}

const encrypted =
  "select from pg_stat_ssl join pg_stat_activity using (pid) where ssl and backend_type = 'client backend'"

describe.each(Object.entries(clients))('%s', (name, create) => {
  test('works over TLS, closes what it opened, and refuses an untrusted server', async () => {
    const { client, end } = create({ ca })
    {
      await using store = postgres(client, { create: true })
      const [holder, waiter] = [claimOf(name), claimOf(name, { queue: true })]
      await hold(store, holder)
      await acquire(store, waiter)
      let woken = false
      await store.watch?.(waiter, () => (woken = true), signal)
      expect(await server.query(encrypted)).toHaveLength(2)
      await store.release(holder, signal)
      await until('the waiter is woken', () => woken)
      await using locks = advisory(client)
      // Its session is kept until this lease has ended.
      await hold(locks, claimOf(name, { ttl: 2_000 }))
    }
    await until('all are closed', async () => (await server.query(encrypted)).length === 0)
    await end()
    const stranger = create(true)
    await using refused = postgres(stranger.client)
    expect(await failureOf(hold(refused, claimOf(name)))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/unable to verify the first certificate/),
    })
    await stranger.end()
  })

  test('sends the host name to a server that hosts many databases', async () => {
    const { client, end } = create({ ca })
    await using store = postgres(client, { create: true })
    const named = proxy.cutAfterRequest('localhost')
    await failureOf(hold(store, claimOf(name)))
    await named
    await end()
  })

  test('gives up on a server that stops responding, also during the handshake, and serves again', async () => {
    const { client, end } = create({ ca })
    await using store = postgres(client, { create: true })
    const silent = postgres(client)
    proxy.down.hold()
    const asked = failureOf(hold(silent, claimOf(name)))
    await until('the handshake waits', () => proxy.connections > 0)
    await silent[Symbol.asyncDispose]()
    expect(await asked).toMatchObject({ code: 'CLOSED' })
    proxy.down.pass()
    const claim = claimOf(`${name} silent`)
    await hold(store, claim)
    proxy.down.hold()
    const renewed = failureOf(store.renew(claim, signal))
    expect(await renewed).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    proxy.down.pass()
    expect(await until('it serves', () => store.renew(claim, signal).catch(() => undefined))).toMatchObject({
      held: true,
    })
    await end()
  })
})
