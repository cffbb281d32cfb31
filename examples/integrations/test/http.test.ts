import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { createLocks, type Lease, LeaseError, type Locks } from '../../../src/index.ts'
import { redis } from '../../../src/stores/redis/index.ts'
import { service as express } from '../express.ts'
import { service as fastify } from '../fastify.ts'
import { service as hono } from '../hono.ts'
import { leaseAnswer } from '../lease-answer.ts'

type Close = (month: string, lease: Lease) => Promise<object>

/** Each resolves to its server, which listens. */
const frameworks: Record<string, (locks: Locks, close: Close) => Promise<Server>> = {
  async Express(locks, close) {
    return listening(express(locks, close).listen(0, '127.0.0.1'))
  },
  async Fastify(locks, close) {
    const app = fastify(locks, close)
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server
  },
  async Hono(locks, close) {
    const options = { fetch: hono(locks, close).fetch, hostname: '127.0.0.1', port: 0 }
    return listening(serve(options) as Server)
  },
}

let store: RedisServer
let client: Redis
let locks: Locks
let other: Locks
let server: Server | undefined

beforeEach(async () => {
  store = await startRedis()
  client = new Redis(store.port, store.host, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  locks = createLocks(redis(client), { ttl: 5_000, owner: 'service' })
  other = createLocks(redis(client), { ttl: 5_000, owner: 'other' })
})
afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  await Promise.all([locks.close(), other.close()])
  client.disconnect()
  await store.stop()
})

test.each(Object.entries(frameworks))('%s answers with the status of each error', async (_, start) => {
  const works: Record<string, Close> = {
    good: async (_month, lease) => ({ name: lease.name }),
    broken: async (_month, lease) => {
      await Promise.all([other.break(lease.name), once(lease.signal, 'abort')])
      throw lease.signal.reason
    },
    stale: async (_month, { name }) => {
      throw Object.assign(new Error('the write failed'), { cause: staleToken(name) })
    },
    bad: async () => {
      throw new Error('a secret of the service')
    },
  }
  server = await start(locks, (month, lease) => (works[month] as Close)(month, lease))
  const post = postTo(server)

  expect(await post('good')).toMatchObject({ status: 200, body: { name: 'close good' } })
  await using held = await other.acquire('close held')
  const busy = await post('held')
  expect(busy).toEqual({ status: 409, retryAfter: '1', body: { status: 409, code: 'BUSY' } })
  await held.release()
  expect(await post('broken')).toEqual({ status: 423, retryAfter: null, body: { status: 423, code: 'LEASE_LOST' } })
  expect(await post('stale')).toEqual({ status: 423, retryAfter: null, body: { status: 423, code: 'STALE_TOKEN' } })
  expect(await post('bad')).toMatchObject({ status: 500 })
  await store.kill()
  expect(await post('good')).toMatchObject({ status: 503, retryAfter: /^\d+$/, body: { status: 503 } })
  await locks.close()
  expect(await post('good')).toMatchObject({ status: 503, body: { code: 'CLOSED' } })
})

async function listening(server: Server): Promise<Server> {
  if (!server.listening) await once(server, 'listening')
  return server
}

function postTo(server: Server) {
  const { port } = server.address() as AddressInfo
  return async (month: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/months/${month}/close`, { method: 'POST' })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json')
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body: isJson ? JSON.parse(text) : text,
    }
  }
}

function staleToken(lease: string): LeaseError {
  return new LeaseError('STALE_TOKEN', 'a newer holder has written', { leaseName: lease, token: 1n, highest: 2n })
}

test('the answer to a semaphore without a free permit is a 503 where the service says so', async () => {
  const geocoder = locks.semaphore('geocoder', { limit: 1 })
  await using _ = await geocoder.acquire()
  const error = await other
    .semaphore('geocoder', { limit: 1 })
    .acquire({ wait: 50 })
    .catch((reason: unknown) => reason)
  expect(leaseAnswer(error, 503)).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  expect(leaseAnswer(error)).toMatchObject({ status: 409 })
})
