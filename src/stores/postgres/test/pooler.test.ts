import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PgBouncer, poolerGenerations, startPgBouncer } from '../../../../lab/servers/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import { createLocks } from '../../../index.ts'
import { postgres } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt } from './support.ts'

describe.each(poolerGenerations())('pgbouncer (%s)', generation => {
  let server: PostgresServer
  let pooler: PgBouncer

  beforeAll(async () => {
    server = await startPostgres()
    pooler = await startPgBouncer(server, { size: 2, generation })
  })
  afterAll(async () => {
    await pooler.stop()
    await server.stop()
  })

  test.each(Object.entries(clients))(
    'twelve processes over %s share two connections to the server',
    async (_, create) => {
      const all = Array.from({ length: 12 }, () => create(pooler.url)).map(({ client, close }) => {
        return { locks: createLocks(postgres(client, { create: true, direct: false }), { ttl: 2_000 }), close }
      })
      let inside = 0
      await Promise.all(
        all.flatMap(({ locks }, index) => [
          locks.using(
            `own ${index}`,
            lease => new Promise<void>(resolve => setTimeout(() => resolve(lease.assertHeld()), 800)),
          ),
          locks.using('shared', async () => {
            inside += 1
            expect(inside).toBe(1)
            await new Promise(resolve => setTimeout(resolve, 5))
            inside -= 1
          }),
        ]),
      )
      const rows = await server.query(
        "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
      )
      expect(rows.length).toBeLessThanOrEqual(2)
      await Promise.all(
        all.map(async ({ locks, close }) => {
          await locks.close()
          await close()
        }),
      )
    },
  )

  test('works where each statement may go to another connection', async () => {
    await using strict = await startPgBouncer(server, { mode: 'statement', generation })
    await using store = storeAt(strict.url, { direct: false })
    const claim = claimOf('statement')
    await hold(store, claim)
    expect(await store.renew(claim, signal)).toMatchObject({ held: true })
    expect(await store.annotate({ ...claim, note: "it's \\ $1; '" }, signal)).toBe(true)
    expect(await look(store, claim)).toMatchObject([{ note: "it's \\ $1; '" }])
    expect(await store.release(claim, signal)).toBe('released')
  })

  test('detects that a pooler passes no notifications, and polls instead', async () => {
    const [holder, waiter] = [claimOf('deaf'), claimOf('deaf', { queue: true })]
    await using store = storeAt(pooler.url)
    await hold(store, holder)
    await acquire(store, waiter)
    expect(await failureOf(store.watch?.(waiter, () => {}, signal) as Promise<void>)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/do not pass through a pooler: give the option direct/),
    })
    expect(await acquire(store, waiter)).toMatchObject({ held: false, retryAfter: expect.closeTo(30, -2) })
    const locks = createLocks(store)
    const waiting = locks.acquire('deaf')
    await store.release(waiter, signal)
    await store.release(holder, signal)
    await (await waiting).release()
  })

  test('is woken over a direct connection beside the pooler', async () => {
    const [pooled, direct] = [new Pool({ connectionString: pooler.url }), new Pool({ connectionString: server.url() })]
    const [one, two] = [0, 1].map(() => createLocks(postgres(pooled, { direct })))
    const lease = await one?.acquire('around')
    const waiting = two?.acquire('around')
    await new Promise(resolve => setTimeout(resolve, 300))
    await lease?.release()
    const next = await waiting
    await next?.release()
    for (const locks of [one, two]) await locks?.close()
    await pooled.end()
    await direct.end()
  })

  test('rarely retries to subscribe if notifications do not work', async () => {
    await using proxy = await startProxy(pooler)
    const url = pooler.url.replace(`:${pooler.port}/`, `:${proxy.port}/`)
    const [one, two] = [createLocks(storeAt(url)), createLocks(storeAt(url))]
    const lease = await one.acquire('deaf')
    const waiting = two.acquire('deaf')
    await new Promise(resolve => setTimeout(resolve, 2_500))
    // Two for each process, and six tries with pauses that double, where each time that it asked one was made before.
    expect(proxy.accepted).toBeLessThan(20)
    await lease.release()
    await (await waiting).release()
    for (const locks of [one, two]) await locks.close()
  })
})
