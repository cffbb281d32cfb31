import { join } from 'node:path'
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Port, reservePort } from '../../../../lab/servers/port.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { ROOT } from '../../../../test/script-node.ts'
import { createLocks } from '../../../index.ts'
import type { RedisClient } from '../index.ts'
import { claimOf, failureOf, hold, host, storeOf } from './support.ts'

const certificate = (file: string): string => join(ROOT, 'test/certificates', file)

let secure: Port
let server: RedisServer

beforeAll(async () => {
  secure = await reservePort()
  server = await startRedis({
    config: {
      'tls-port': secure.number,
      'tls-cert-file': certificate('server.pem'),
      'tls-key-file': certificate('server.key'),
      'tls-ca-cert-file': certificate('ca.pem'),
      'tls-auth-clients': 'no',
    },
  })
})
afterAll(async () => {
  await server.stop()
  await secure.release()
})

const clients: Record<string, (port: number, tls: boolean) => RedisClient> = {
  ioredis: (port, tls) => new Redis({ host, port, lazyConnect: true, ...(tls && { tls: {} }) }),
  iovalkey: (port, tls) => new Valkey({ host, port, lazyConnect: true, ...(tls && { tls: {} }) }),
  'node-redis': (port, tls) => createClient({ socket: { host, port, ...(tls && { tls }) } }),
  'node-redis4': (port, tls) => createClient4({ socket: { host, port, ...(tls && { tls }) } }),
}

describe.concurrent.each(Object.entries(clients))('%s', (_, create) => {
  test('F10: says that the port does not speak TLS', async () => {
    await using store = storeOf(create(server.port, true))
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /cannot be reached: this port does not speak TLS; the URL or the client asks for TLS/,
      ),
    })
  })

  test('F10: says so also when a request may take 1 s', async () => {
    await using locks = createLocks(storeOf(create(server.port, true)), { ttl: 3_000 })
    expect(await failureOf(locks.acquire('a'))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/this port does not speak TLS; the URL or the client asks for TLS/),
    })
  })

  test('F10: says that the port may speak TLS', async () => {
    await using store = storeOf(create(secure.number, false))
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/this port speaks TLS: use rediss:/),
    })
  })

  test('F10: reports neither if a connection without TLS works', async () => {
    await using store = storeOf(create(server.port, false))
    await hold(store, claimOf(crypto.randomUUID()))
  })
})
