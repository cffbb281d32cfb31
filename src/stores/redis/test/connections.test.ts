import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Pipe } from '../../../../lab/servers/pipe.ts'
import { startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { postgres } from '../../postgres/index.ts'
import { acquire, claimOf, failureOf, hold, host, look, storeOf } from './support.ts'

interface Backend extends AsyncDisposable {
  readonly port: number
}

const engines: Record<string, { start(): Promise<Backend>; open(port: number): Store }> = {
  redis: { start: () => startRedis(), open: port => storeOf(new Redis({ port, lazyConnect: true })) },
  postgres: {
    start: () => startPostgres(),
    open: port => postgres(new Pool({ host, port, user: 'postgres', database: 'postgres' }), { create: true }),
  },
}

describe.each(Object.entries(engines))('%s', (_, { start, open }) => {
  let server: Backend
  let proxy: TcpProxy
  let store: Store

  beforeEach(async () => {
    server = await start()
    proxy = await startProxy(server)
    store = open(proxy.port)
    await hold(store, claimOf('warm'))
  })
  afterEach(async () => {
    await store[Symbol.asyncDispose]()
    await proxy.stop()
    await server[Symbol.asyncDispose]()
  })

  /** The current connections stop responding. */
  const silence = (): void => {
    for (const pipe of pipes()) pipe.deafen()
  }
  const pipes = (): Pipe[] => [...proxy.up.pipes, ...proxy.down.pipes]

  const cut = async (): Promise<void> => {
    proxy.reset()
    await until('it serves again', () => look(store, { name: 'warm' }).catch(() => undefined))
  }

  /** One request is lost on an unresponsive connection, and gives up after 5 s. Others must be served before. */
  const servesAfterSilence = async (): Promise<void> => {
    silence()
    let [isServed, hasGivenUp] = [false, false]
    acquire(store, claimOf('lost', { ttl: 60_000 })).catch(() => {
      hasGivenUp = true
    })
    const ask = async (): Promise<void> => {
      await hold(store, claimOf(randomUUID()))
      isServed = true
    }
    await until(
      'a request settles',
      () => {
        ask().catch(() => {})
        return isServed || hasGivenUp
      },
      { every: 100 },
    )
    expect(isServed).toBe(true)
  }

  test('S4: a reachable server is used after two resets and an unresponsive connection', {
    timeout: 20_000,
  }, async () => {
    await cut()
    await cut()
    await servesAfterSilence()
  })

  test('S4: a reachable server is used after any number of unresponsive connections and resets', {
    timeout: 60_000,
  }, async () => {
    for (const each of ['silent', 'silent', 'cut', 'silent', 'silent', 'cut', 'cut', 'silent']) {
      if (each === 'cut') await cut()
      else await servesAfterSilence()
    }
    await until('no connection is left of those before', () => proxy.connections <= 4, { limit: 15_000 })
  })

  test('S4: a reachable server is used although a new connection hangs', { timeout: 20_000 }, async () => {
    const accepted = proxy.accepted
    proxy.up.hold()
    proxy.reset()
    await until('the connection is gone', () => proxy.connections === 0)
    const first = hold(store, claimOf('first', { ttl: 60_000 }))
    await until('it connects', () => proxy.accepted > accepted)
    silence()
    proxy.up.pass()
    await first
  })
})

describe('a password that is changed and restored', () => {
  const refused = /refused the user or password/
  let server: RedisServer
  let proxy: TcpProxy
  let store: Store

  beforeEach(async () => {
    server = await startRedis({ password: 'one' })
    proxy = await startProxy(server)
    store = storeOf(new Redis({ port: proxy.port, password: 'one', lazyConnect: true }))
    await hold(store, claimOf('warm'))
    await change('one', 'two')
    proxy.reset()
    await until('the store has found out', async () =>
      refused.test((await failureOf(look(store, { name: 'warm' }))).message),
    )
  })
  afterEach(async () => {
    await store[Symbol.asyncDispose]()
    await proxy.stop()
    await server.stop()
  })

  async function change(from: string, to: string): Promise<void> {
    const client = new Redis({ port: server.port, password: from })
    await client.config('SET', 'requirepass', to)
    client.disconnect()
  }

  test('S8: a wait continues while the password is wrong', async () => {
    const locks = createLocks(store, { ttl: 30_000 })
    const waiting = locks.acquire('a', { wait: 20_000 })
    expect(await failureOf(locks.tryAcquire('b'))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(refused),
    })
    await change('two', 'one')
    await (await waiting).release()
  })

  test('S8: the first call after the restore is served', async () => {
    const before = proxy.down.bytes
    proxy.down.hold()
    const early = failureOf(hold(store, claimOf('a')))
    await until('the server has refused', () => proxy.down.bytes > before)
    await change('two', 'one')
    const served = hold(store, claimOf('b'))
    proxy.down.pass()
    expect(await early).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await served
  })
})
