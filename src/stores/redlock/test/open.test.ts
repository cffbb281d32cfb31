import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { createClient, createClientPool } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { claimOf, failureOf, hold, look, nodesOf, signal } from '../../../../test/support.ts'
import { openStore } from '../../../connect.ts'
import { connect, createLocks } from '../../../index.ts'
import { host } from '../../redis/test/support.ts'
import type { RedisClient, RedlockOptions } from '../index.ts'
import { redlock } from '../index.ts'
import { type Nodes, startNodes, TRUSTED } from './support.ts'

const password = 'p@ss:w/rd#%?,'
const encoded = encodeURIComponent(password)

let nodes: Nodes
/** As in a URL. */
let addresses: string[]
beforeAll(async () => {
  nodes = await startNodes(3, index => ({ password, users: [`app on >pw${index} >pw ~* &* +@all`] }))
  addresses = nodes.servers.map(({ port }) => `${host}:${port}`)
})
afterAll(async () => {
  await nodes[Symbol.asyncDispose]()
})

const unused = (): Redis => new Redis({ port: 1, lazyConnect: true })

describe('a URL', () => {
  test('has the servers, their credentials, their database and the options', async () => {
    const options = 'prefix=team%20a&trustRestarted=true&nodeTimeout=250&acquireShare=0.5&drift=0.1&maxTtl=20000'
    const claim = claimOf('a', { ttl: 10_000 })
    {
      const all = addresses.map(address => `:${encoded}@${address}`).join(',')
      await using store = await openStore(`redlock://${all}/3?${options}`)
      expect(store).toMatchObject({ kind: 'redlock of 3', guarantees: { waiting: 'pushed' } })
      expect(store.guarantees.durability).toMatch(/^1 of 3 servers may be lost; .*\(trustRestarted\)/)
      expect(store.guarantees.acquireShare).toBe(0.5)
      expect(await store.acquire(claim, signal)).toMatchObject({ held: true, ttl: expect.closeTo(9_000 / 0.99) })
      const waiter = claimOf('a', { owner: 'waiter', note: 'waits', queue: true })
      let isWoken = false
      await store.watch?.(waiter, () => (isWoken = true), signal)
      expect(await store.acquire(waiter, signal)).toMatchObject({ held: false })
      expect(await look(store, { name: 'a' })).toMatchObject([
        { owner: claim.owner },
        { owner: 'waiter', note: 'waits' },
      ])
      expect(await store.release(claim, signal)).toBe('released')
      await until('it is woken', () => isWoken)
      expect(await store.acquire(waiter, signal)).toMatchObject({ held: true })
      await nodesOf(store) // a majority may have answered before
    }
    for (const server of nodes.servers) {
      const databases = Object.keys(await server.info('keyspace')).filter(name => name.startsWith('db'))
      expect(databases).toEqual(['db3'])
    }
    const { port } = nodes.servers[0] as { port: number }
    const client = new Redis({ port, password, db: 3 })
    expect(await client.keys('team a:redlock:{:a}')).toHaveLength(1)
    client.disconnect()
  })

  test('has credentials for each server, and common ones for the others', async () => {
    const [first, second, third] = addresses
    const options = 'trustRestarted=true&nodeTimeout=2000'
    for (const url of [
      `redlock://app:pw0@${first},app:pw1@${second},app:pw2@${third}?${options}`,
      `redlock://${addresses.join(',')}?username=app&password=pw&${options}`,
      `redlock://:${encoded}@${first},${addresses.slice(1).join(',')}?password=${encoded}&${options}`,
      `REDLOCK://:${encoded}@${first},app:pw1@${second},${third}/?password=${encoded}&${options}`,
    ]) {
      await using store = await openStore(url)
      const claim = claimOf('b')
      await hold(store, claim)
      expect(await nodesOf(store)).toMatchObject(Array.from({ length: 3 }, () => ({ state: 'serving' })))
      await store.release(claim, signal)
    }
  })

  test('may have addresses of version 6, and ports that are left out', async () => {
    await using store = await openStore(`redlock://[::1]:1,[2001:db8::7]:2,${host}?nodeTimeout=10`)
    const records = await nodesOf(store)
    const names = records?.map(({ name }) => name)
    expect(names).toEqual(['[::1]:1', '[2001:db8::7]:2', `${host}:6379`])
    await using six = await startRedis({ config: { bind: `${host} ::1` } })
    await using mixed = await openStore(`redlock://[::1]:${six.port},:${encoded}@${addresses[0]}?trustRestarted=true`)
    await hold(mixed, claimOf('a'))
  })

  test('with redlocks: speaks TLS to every server', async () => {
    const heard: number[] = []
    const listener = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', data => {
        heard.push(data[0] ?? -1)
        socket.destroy()
      })
    }).listen(0, host)
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    await using store = await openStore(`redlocks://${host}:${port},${host}:${port}`)
    await failureOf(hold(store, claimOf('a')))
    listener.close()
    const CLIENT_HELLO = 22
    // A slow handshake is retried, and a plain PING then checks whether the port speaks TLS.
    const others = heard.filter(byte => byte !== 'P'.charCodeAt(0))
    expect(others.length).toBeGreaterThanOrEqual(2)
    expect(new Set(others)).toEqual(new Set([CLIENT_HELLO]))
  })

  test.each<[string, RegExp]>([
    ['redlock:', /has no host: write redlock:\/\//],
    ['redlock://', /has no host/],
    ['redlock:a,b,c', /has no host/],
    ['redlock://?prefix=a', /has no host/],
    ['redlock://a,b,c#d', /is invalid/],
    ['redlock://u:s3cret@a,,c', /a host in the URL .* is invalid/],
    ['redlock://u:s3cret@a:99999,b,c', /port 99999/],
    ['redlock://u:s3cret@a b,c,d', /a host in the URL .* is invalid/],
    ['redlock://u:s3cret%@a,b,c', /a % that encodes nothing/],
    ['redlock://u:s3cret@a', /was given 1 client: use redis\(client\) for one server/],
    ['redlock://u:s3cret@a,b,c/zero', /database in the URL of the Redlock store must be a number/],
    ['redlock://a,b,c/-1', /database in the URL of the Redlock store must be a number/],
    ['redlock://u:x/s3cret@a,b,c', /database in the URL of the Redlock store must be a number/],
    ['redlock://u:x?s3cret@a,b,c', /has no such option, only prefix, /],
    ['redlock://u:x?s3cret=1@a,b,c', /has no such option, only prefix, /],
    ['redlock://u:x#s3cret@a,b,c', /is invalid/],
    ['redlock://a,b,c?ttl=5', /has no option "ttl", only prefix, nodeTimeout/],
    ['redlock://a,b,c?prefix=a&prefix=b', /prefix is given twice/],
    ['redlock://a,b,c?password=s3cret&password=s3cret', /password is given twice/],
    ['redlock://a,b,c?prefix=', /prefix is empty/],
    ['redlock://a,b,c?nodeTimeout=', /nodeTimeout must be a number from 1 to 5000, not 0/],
    ['redlock://a,b,c?nodeTimeout=50ms', /nodeTimeout must be a number from 1 to 5000, not NaN/],
    ['redlock://a,b,c?maxTtl=1e99', /maxTtl must be a whole number/],
    ['redlock://a,b,c?trustRestarted=yes', /trustRestarted must be true or false, not "yes"/],
    ['redlock://a,b,c?trustRestarted', /trustRestarted must be true or false, not ""/],
  ])('%s is refused, and what may be secret is not repeated', async (url, message) => {
    const error = await failureOf(openStore(url))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) })
    expect(inspect(error)).not.toMatch('s3cret')
  })

  test('reports a wrong password and its server, and serves once it is right', async () => {
    const [first, second, third] = addresses
    const own = `app:pw@${first},app:pw@${second},app:s3cret@${third}`
    const locks = await connect(`redlock://${own}?trustRestarted=true&nodeTimeout=250`, { lazy: true })
    // Until all have answered, a majority may well be enough.
    const error = await failureOf(nodesOf(locks.store).then(() => locks.acquire('c')) as Promise<unknown>)
    expect(error).toMatchObject({ code: 'ACCESS_DENIED', retryable: false })
    expect(error.message).toMatch(`${third}: Redis refused the user or password: correct them`)
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch('s3cret')
    await nodes.servers[2]?.call('ACL', 'SETUSER', 'app', '>s3cret')
    await expect.poll(() => locks.acquire('c').then(lease => lease.release())).toBe('released')
    await locks.close()
  })
})

test.each<[string, () => unknown, RedlockOptions | undefined, RegExp]>([
  ['nothing', () => undefined, undefined, /needs an array of clients, one for each server, not undefined/],
  ['one client', unused, undefined, /needs an array of clients, one for each server, not an object/],
  ['a URL', () => 'redlock://a,b,c', undefined, /needs an array of clients/],
  ['no client', () => [], undefined, /was given 0 clients; a majority needs independent servers/],
  ['a single one', () => [unused()], undefined, /1 client: use redis\(client\) for one server/],
  ['what is none', () => [unused(), {}, unused()], undefined, /was given an object of Object: pass a client/],
  ['holes', () => [unused(), undefined], undefined, /^redlock, as client 2, was given undefined: pass a client/],
  ['one twice', () => Array.from({ length: 3 }).fill(unused()), undefined, /the same client twice/],
  ['a cluster', () => [unused(), new Redis.Cluster([{ port: 1 }], { lazyConnect: true })], {}, /a cluster client/],
  ['a pool', () => [unused(), createClientPool()], {}, /pool, .* reconnect silently/],
  ['a wrong option', () => [unused(), unused()], { ttl: 5 } as RedlockOptions, /no option "ttl", only prefix/],
  ['no prefix', () => [unused(), unused()], { prefix: '' }, /prefix is empty/],
  ['an odd prefix', () => [unused(), unused()], { prefix: 'a\n' }, /prefix has a control character/],
  ['a prefix that would hash away', () => [unused(), unused()], { prefix: 'a{}b' }, /pair of braces/],
  ['no time for a node', () => [unused(), unused()], { nodeTimeout: 0 }, /nodeTimeout must be a number from 1/],
  ['too much of it', () => [unused(), unused()], { nodeTimeout: 5_001 }, /nodeTimeout must be .* to 5000, not 5001/],
  ['NaN', () => [unused(), unused()], { nodeTimeout: Number.NaN }, /nodeTimeout must be .*, not NaN/],
  ['text', () => [unused(), unused()], { nodeTimeout: '50' as never }, /nodeTimeout must be .*, not "50"/],
  ['a short maxTtl', () => [unused(), unused()], { maxTtl: 5 }, /maxTtl must be a whole number .* from 10/],
  ['a limit above the ttl', () => [unused(), unused()], { acquireShare: 1.1 }, /acquireShare must be .* to 1, not/],
  ['no limit', () => [unused(), unused()], { acquireShare: 0 }, /acquireShare must be a number from 0.01/],
  ['less drift than the margin', () => [unused(), unused()], { drift: 0.001 }, /drift must be a number from 0.01/],
  ['more drift than is left', () => [unused(), unused()], { drift: 0.6 }, /drift must be a number .* to 0.5/],
  ['a word', () => [unused(), unused()], { trustRestarted: 'no' as never }, /trustRestarted must be true or false/],
])('redlock refuses %s, and says what it needs', (_, clients, options, message) => {
  const attempt = (): unknown => redlock(clients() as RedisClient[], options)
  expect(attempt).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(attempt).toThrow(message)
})

test('a ttl longer than maxTtl is refused, for acquire and for extend', async () => {
  await using few = await startNodes(3)
  await few.age()
  const locks = createLocks(few.store({ maxTtl: 5_000, nodeTimeout: 1_000 }), { ttl: 5_000 })
  const refusal = {
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/ttl of 5001 ms is longer than maxTtl of the store, 5000 ms/),
  }
  await expect(locks.acquire('a', { ttl: 5_001 })).rejects.toMatchObject(refusal)
  const lease = await locks.acquire('a')
  await expect(lease.extend(5_001)).rejects.toMatchObject(refusal)
  lease.assertHeld()
  expect(await lease.extend(4_000)).toBeGreaterThan(0)
  await lease.release()
  await locks.close()
})

test('opens nothing before the first request, leaves the clients alone, and closes what it opened', async () => {
  await using few = await startNodes(3)
  const connections = (): number => few.proxies.reduce((sum, proxy) => sum + proxy.connections, 0)
  const clients = few.proxies.map(({ port }) => new Redis({ port, lazyConnect: true }))
  const listeners = (): number[] =>
    clients.map(client => client.eventNames().reduce((count, event) => count + client.listenerCount(event), 0))
  const before = listeners()
  {
    await using store = redlock(clients, TRUSTED)
    expect(connections()).toBe(0)
    const claim = claimOf('a')
    await hold(store, claim)
    await store.watch?.(claim, () => {}, signal)
  }
  await expect.poll(connections).toBe(0)
  expect(clients.map(({ status }) => status)).toEqual(['wait', 'wait', 'wait'])
  expect(listeners()).toEqual(before)
})

test('clients of several libraries form one majority, and waiters poll if one of them cannot subscribe', async () => {
  await using few = await startNodes(3)
  const [one, two, three] = few.servers.map(({ port }) => port) as [number, number, number]
  const pool = createClientPool({ socket: { host, port: three } })
  await pool.connect()
  const clients = [new Redis({ port: one, lazyConnect: true }), createClient({ socket: { host, port: two } }), pool]
  {
    await using store = redlock(clients, TRUSTED)
    expect(store).toMatchObject({ kind: 'redlock of 3', guarantees: { waiting: 'polled' } })
    expect((await nodesOf(store)).map(({ name }) => name)).toEqual([`localhost:${one}`, `${host}:${two}`, 'node 3'])
    const claim = claimOf('a')
    const token = await hold(store, claim)
    expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held', token }])
    const locks = createLocks(store, { ttl: 3_000 })
    const waiting = locks.acquire('a')
    await expect.poll(() => look(store, { name: 'a' })).toHaveLength(2)
    await store.release(claim, signal)
    await (await waiting).release()
    await locks.close()
  }
  await pool.close()
})
