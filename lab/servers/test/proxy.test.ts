import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { startProxy, type TcpProxy } from '../proxy.ts'
import { type RedisServer, startRedis } from '../redis.ts'
import { until } from '../until.ts'

let server: RedisServer
let proxy: TcpProxy
const clients: Redis[] = []

/** What ioredis says of a connection that was refused, closed or reset. */
const GONE = 'Connection is closed'

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.call('FLUSHALL')
  proxy = await startProxy(server)
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect()
  await proxy.stop()
})

/** One connection that is never made again, and whose commands fail with it. */
async function connect(): Promise<Redis> {
  const client = new Redis({
    port: proxy.port,
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  })
  client.on('error', () => {})
  clients.push(client)
  await client.connect()
  await client.ping()
  return client
}

const settled = (promise: Promise<unknown>): Promise<string> =>
  Promise.race([promise.then(String, String), new Promise<string>(resolve => setTimeout(resolve, 30, 'pending'))])

/** Connections that the server believes to have, without the one that asks. */
const connectionsOfServer = async (): Promise<number> =>
  String(await server.call('CLIENT', 'LIST')).match(/^id=/gm)?.length ?? 0

test('it passes both directions and counts', async () => {
  const client = await connect()
  const [up, down] = [proxy.up.bytes, proxy.down.bytes]
  expect(await client.set('name', 'value')).toBe('OK')
  expect(proxy.up.bytes - up).toBe('*3\r\n$3\r\nset\r\n$4\r\nname\r\n$5\r\nvalue\r\n'.length)
  expect(proxy.down.bytes - down).toBe('+OK\r\n'.length)
  await connect()
  expect([proxy.accepted, proxy.connections]).toEqual([2, 2])
  client.disconnect()
  await until('the connection is gone', () => proxy.connections === 1)
  expect(proxy.accepted).toBe(2)
})

test('held requests reach the server when released, in order', async () => {
  const client = await connect()
  proxy.up.hold()
  const replies = Promise.all([client.set('name', 'one'), client.append('name', ' two')])
  expect(await settled(replies)).toBe('pending')
  expect(await server.call('GET', 'name')).toBeNull()
  proxy.up.pass()
  expect(await replies).toEqual(['OK', 7])
})

test('a held reply comes late, of a request that was carried out', async () => {
  const client = await connect()
  proxy.down.hold()
  const reply = client.set('name', 'value')
  await until('the request is carried out', () => server.call('GET', 'name'))
  expect(await settled(reply)).toBe('pending')
  proxy.down.pass()
  expect(await reply).toBe('OK')
})

test('a connection that goes away while requests are held goes away at the server after them', async () => {
  const client = await connect()
  const before = proxy.up.bytes
  proxy.up.hold()
  client.set('late', 'value').catch(() => {})
  await until('the request has left', () => proxy.up.bytes > before)
  client.disconnect()
  expect(await connectionsOfServer()).toBe(2)
  proxy.up.pass()
  expect(await until('the late request is carried out', () => server.call('GET', 'late'))).toBe('value')
  await until('the server sees the end', async () => (await connectionsOfServer()) === 1)
})

test('a dropped request is never carried out, and its connection is reset afterwards', async () => {
  const client = await connect()
  const before = proxy.up.bytes
  proxy.up.drop()
  const reply = client.set('name', 'value')
  expect(await settled(reply)).toBe('pending')
  await until('the request has left', () => proxy.up.bytes > before)
  proxy.up.pass()
  await expect(reply).rejects.toThrow(GONE)
  expect(await server.call('GET', 'name')).toBeNull()
  expect(await (await connect()).set('name', 'value')).toBe('OK')
})

test('a dropped reply leaves its request carried out', async () => {
  const client = await connect()
  proxy.down.drop()
  const reply = client.set('name', 'value')
  await until('the request is carried out', () => server.call('GET', 'name'))
  expect(await settled(reply)).toBe('pending')
  proxy.down.pass()
  await expect(reply).rejects.toThrow(GONE)
})

test('a delayed direction is late by as much, and keeps the order', async () => {
  const client = await connect()
  proxy.down.delay(60)
  const start = performance.now()
  const replies = await Promise.all([client.incr('count'), client.incr('count'), client.incr('count')])
  expect(performance.now() - start).toBeGreaterThan(59)
  expect(replies).toEqual([1, 2, 3])
})

test('a stalled direction reads nothing', async () => {
  const client = await connect()
  const before = proxy.up.bytes
  proxy.up.stall()
  const reply = client.set('name', 'x'.repeat(10_000))
  expect(await settled(reply)).toBe('pending')
  expect(proxy.up.bytes).toBe(before)
  proxy.up.pass()
  expect(await reply).toBe('OK')
})

test('a reset ends the connections on both sides, and new ones are served', async () => {
  const client = await connect()
  proxy.down.hold()
  const reply = client.ping()
  proxy.reset()
  await expect(reply).rejects.toThrow(GONE)
  await until('the server has forgotten the client', async () => (await connectionsOfServer()) === 1)
  proxy.down.pass()
  expect(await (await connect()).ping()).toBe('PONG')
})

test('a reset upwards makes the server forget a client that does not know', async () => {
  const client = await connect()
  proxy.up.reset()
  await until('the server has forgotten the client', async () => (await connectionsOfServer()) === 1)
  expect(await settled(client.ping())).toBe('pending')
  expect(client.status).toBe('ready')
})

test('a reset downwards cuts off a client that the server still believes in', async () => {
  const client = await connect()
  proxy.down.reset()
  await until('the client knows', () => client.status === 'end')
  expect(await connectionsOfServer()).toBe(2)
})

test('it refuses new connections while the present ones go on, until it accepts again', async () => {
  const client = await connect()
  await proxy.refuse()
  await expect(connect()).rejects.toThrow(GONE)
  expect(await client.ping()).toBe('PONG')
  await proxy.accept()
  expect(await (await connect()).ping()).toBe('PONG')
})

test('it resets clients of a server that is down, and serves them when that is back', async () => {
  await server.kill()
  await expect(connect()).rejects.toThrow(GONE)
  await server.start()
  expect(await (await connect()).ping()).toBe('PONG')
})

test('a connection cut after a request leaves it carried out, and its client without a reply', async () => {
  const client = await connect()
  const cut = proxy.cutAfterRequest(/lease-[12]/)
  expect(await client.set('other', 'value')).toBe('OK')
  await expect(client.set('lease-1', 'value')).rejects.toThrow(GONE)
  await cut
  expect(await server.call('GET', 'lease-1')).toBe('value')
  expect(await (await connect()).set('lease-2', 'value')).toBe('OK')
})

test('a connection cut while the server is paused leaves a request that is carried out later', async () => {
  const client = await connect()
  const cut = proxy.cutAfterRequest('lease-1')
  await server.pause()
  await expect(client.set('lease-1', 'value')).rejects.toThrow(GONE)
  server.resume()
  await cut
  expect(await server.call('GET', 'lease-1')).toBe('value')
})

test('a lost reply leaves the request carried out and the connection open', async () => {
  const client = await connect()
  const lost = proxy.loseReply('{lease}[1')
  const reply = client.set('{lease}[1', 'value')
  await lost
  expect(await settled(reply)).toBe('pending')
  expect(client.status).toBe('ready')
  expect(await server.call('GET', '{lease}[1')).toBe('value')
  expect(await (await connect()).set('{lease}[1', 'again')).toBe('OK')
})

test('cut connections pass nothing and notify no side, until they are reset', async () => {
  const [one, other] = [await connect(), await connect()]
  await one.set('name', 'one')
  proxy.cut(/^/)
  const replies = [one.get('name'), other.get('name')]
  expect(await settled(Promise.race(replies))).toBe('pending')
  const rejected = Promise.all(replies.map(reply => expect(reply).rejects.toThrow(GONE)))
  await server.restart()
  expect(one.status).toBe('ready')
  proxy.heal()
  await rejected
  expect(await (await connect()).ping()).toBe('PONG')
})

test('only connections whose first bytes match are cut', async () => {
  const echo = async (socket: Socket, text: string): Promise<string> => {
    socket.write(`ECHO ${text}\r\n`)
    return String(await once(socket, 'data')).replace(/^.*\r\n(.*)\r\n$/, '$1')
  }
  const sockets = Array.from({ length: 3 }, () => createConnection(proxy.port).on('error', () => {}))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const [one, other, late] = sockets as [Socket, Socket, Socket]
  expect(await echo(one, 'one')).toBe('one')
  expect(await echo(other, 'other')).toBe('other')
  proxy.cut(/one/)
  expect(await settled(echo(one, 'again'))).toBe('pending')
  expect(await echo(other, 'one')).toBe('one')
  expect(await settled(echo(late, 'one more'))).toBe('pending')
})
