import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients, type Owned } from '../../../../test/harnesses/redis.ts'
import type { Store } from '../../../contract/store.ts'
import { requestLimit } from '../../../contract/time.ts'
import { acquire, claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

let server: RedisServer
let proxy: TcpProxy
let owned: Owned
let store: Store

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Rejects if there is no answer within `limit` ms, as the core would. */
async function within<T>(limit: number, answer: Promise<T>): Promise<T> {
  const late = sleep(limit, undefined, { ref: false }).then(() => {
    throw new Error(`not within ${limit} ms`)
  })
  return Promise.race([answer, late])
}

describe.each(Object.entries(clients))('%s', (name, create) => {
  beforeEach(async () => {
    await server.call('FLUSHALL')
    proxy = await startProxy(server)
    owned = await create(proxy.port)
    store = storeOf(owned.client)
    await hold(store, claimOf('warm'))
  })
  afterEach(async () => {
    if (server.isRunning) server.resume()
    else await server.start()
    await store[Symbol.asyncDispose]()
    await owned.close()
    await proxy.stop()
  })

  test('rejects requests while the server is down, and they are not carried out when it is back', async () => {
    await server.kill()
    const outcomes = await Promise.all(
      ['a', 'b', 'c'].map(each => failureOf(within(5_000, acquire(store, claimOf(each))))),
    )
    for (const error of outcomes) expect(error.code).toMatch(/^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
    await server.start()
    await until('it serves again', () => hold(store, claimOf('d')))
    expect((await look(store, { prefix: '' })).map(record => record.name)).toEqual(['d'])
  })

  test('rejects requests in flight when the connection is cut, and does not send them again', async () => {
    proxy.up.hold()
    const outcome = failureOf(within(5_000, acquire(store, claimOf('a'))))
    await sleep(10)
    proxy.up.drop()
    proxy.reset()
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
    proxy.up.pass()
    await until('it serves again', () => hold(store, claimOf('b')))
    expect(await look(store, { name: 'a' })).toEqual([])
  })

  test('recovers the same lease when asked again after the connection was cut before the reply', async () => {
    const claim = claimOf('a')
    const cut = proxy.cutAfterRequest(claim.id)
    expect(await failureOf(within(5_000, acquire(store, claim)))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await cut
    const [record] = await until('it serves again', () => look(store, { name: 'a' }))
    expect(await hold(store, claim)).toBe(record?.token)
  })

  test('recovers the same lease when asked again after a lost reply, on another connection', async () => {
    const claim = claimOf('a', { ttl: 900 })
    const lost = proxy.loseReply(claim.id)
    acquire(store, claim).catch(() => {})
    await lost
    // That of glide is its own, and glide alone replaces it.
    if (name === 'glide') proxy.reset()
    const token = await until('it serves again', () => within(300, hold(store, claim)))
    expect((await look(store, { name: 'a' }))[0]?.token).toBe(token)
    expect(await store.release(claim, signal)).toBe('released')
  })

  test('refuses an acquire that reached a paused server after its sender gave up', async () => {
    const claim = claimOf('a', { ttl: 600 })
    await server.pause()
    const asked = performance.now()
    const stale = acquire(store, claim).catch(() => {})
    await sleep(requestLimit(claim.ttl) + 20)
    server.resume()
    await stale
    expect(performance.now() - asked).toBeGreaterThan(requestLimit(claim.ttl))
    await until('it serves again', () => hold(store, claimOf('b')))
    expect(await look(store, { name: 'a' })).toEqual([])
    expect(await server.call('KEYS', '*{:a}*')).toEqual([])
  })

  test('refuses a stale acquire, and one that arrives after its withdrawal', async () => {
    const claim = claimOf('a')
    proxy.up.hold()
    const stale = acquire(store, claim).catch(error => error)
    await sleep(20)
    const other = await create(server.port)
    const around = storeOf(other.client)
    expect(await around.release(claim, signal)).toBe('gone')
    proxy.up.pass()
    expect(await stale).toMatchObject({ held: false })
    expect(await look(around, { name: 'a' })).toEqual([])
    await hold(around, claimOf('a'))
    await around[Symbol.asyncDispose]()
    await other.close()
  })

  test('a stale renewal never reports the lease as lost', async () => {
    const claim = claimOf('a')
    await hold(store, claim)
    proxy.up.hold()
    const outcome = store.renew({ ...claim, ttl: 600 }, signal).catch(error => error)
    await sleep(requestLimit(600) + 20)
    proxy.up.pass()
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test('refuses a stale note, and never reports the lease as lost', async () => {
    const claim = claimOf('a', { note: 'in time' })
    await hold(store, claim)
    proxy.up.hold()
    const outcome = store.annotate({ ...claim, ttl: 600, note: 'late' }, signal).catch(error => error)
    await sleep(requestLimit(600) + 20)
    proxy.up.pass()
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await until('it serves again', () => look(store, { name: 'a' }))).toMatchObject([{ note: 'in time' }])
  })
})

test('keeps its connection when only its own event loop was blocked', async () => {
  const { client, close } = (await clients.ioredis?.(server.port)) ?? expect.fail()
  await using near = storeOf(client)
  await hold(near, claimOf('warm too'))
  const connections = async (): Promise<number> => Number((await server.info('stats')).total_connections_received)
  const before = await connections()
  const answer = hold(near, claimOf('alone', { ttl: 1_500 }))
  await new Promise(resolve => setImmediate(resolve))
  const end = performance.now() + 1_000 // twice as long as the request may take
  while (performance.now() < end);
  await answer
  await sleep(100)
  expect((await connections()) - before).toBe(1) // that which asks
  await close()
})

test('rejects requests to a server that accepts connections but does not respond, and tries again', async () => {
  const mute = createServer(socket => socket.on('error', () => {}).resume()).listen(0, host)
  await once(mute, 'listening')
  const { port } = mute.address() as AddressInfo
  await Promise.all(
    Object.entries(clients).map(async ([name, create]) => {
      if (name === 'glide') return // it cannot create such a client
      const { client, close } = await create(port)
      const silent = storeOf(client)
      expect(await failureOf(acquire(silent, claimOf('a')))).toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: 'Redis cannot be reached: not connected within 5000 ms: check its address, and that it runs',
      })
      const second = failureOf(acquire(silent, claimOf('a')))
      await sleep(10)
      await silent[Symbol.asyncDispose]()
      expect(await within(1_000, second)).toMatchObject({ code: 'CLOSED' })
      await close()
    }),
  )
  await until('no connection is left', () => new Promise(resolve => mute.getConnections((_, count) => resolve(!count))))
  mute.close()
})
