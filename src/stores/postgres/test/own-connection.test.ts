import { setTimeout as sleep } from 'node:timers/promises'
import postgresJs from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import { advisory, postgres } from '../index.ts'
import { acquire, claimOf, failureOf, look, signal } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

test.each(Object.entries(clients))('%s: an inspection does not continue over another connection', async (_, create) => {
  await using proxy = await startProxy(server)
  const { client, close } = create(server.urlBy(proxy.port))
  await using store = advisory(client, { create: true })
  const names = Array.from({ length: 501 }, (_each, index) => `page ${index}`) // one more than a page
  await Promise.all(names.map(name => acquire(store, claimOf(name))))
  let shown = 0
  const inspect = async (): Promise<void> => {
    for await (const _record of store.inspect({ prefix: 'page' }, signal)) {
      shown += 1
      if (shown > 1) continue
      proxy.reset()
      await until('the connection has ended', () => proxy.connections === 0)
    }
  }
  expect(await failureOf(inspect())).toMatchObject({ retryable: true })
  expect(shown).toBe(500)
  expect(proxy.accepted).toBe(1)
  await close()
})

test.each(Object.entries({ rows: postgres, advisory }))(
  '%s: a request that postgres.js has not sent yet opens no other connection',
  async (_, storeOf) => {
    await using proxy = await startProxy(server)
    const options: object = { max_pipeline: 1 }
    const sql = postgresJs(server.urlBy(proxy.port), options)
    await using store = storeOf(sql, { create: true })
    await look(store, { prefix: '' }) // connects
    const { accepted } = proxy
    proxy.up.hold()
    const answers = Promise.allSettled([1, 2, 3].map(() => look(store, { prefix: '' })))
    await sleep(100)
    proxy.reset()
    proxy.up.pass()
    for (const { status } of await answers) expect(status).toBe('rejected')
    await sleep(500) // postgres.js would connect within 30 ms
    expect(proxy.accepted).toBe(accepted)
    await sql.end({ timeout: 0 })
  },
)
