import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { reservePort } from '../../../../lab/servers/port.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { createLocks } from '../../../index.ts'
import { openStore } from '../../../store.ts'
import { type ZooKeeperOptions, zookeeper } from '../index.ts'
import { Writer } from '../jute.ts'
import { claimOf, failureOf, hold, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

const pem = (name: string): string => join(import.meta.dirname, '../../../../test/certificates', name)

beforeAll(async () => {
  server = await startZooKeeper({ config: { maxSessionTimeout: 40_000 } })
})
afterAll(() => server.stop())

describe('options', () => {
  test.each([
    [undefined, 'the options of zookeeper must be an object'],
    [{}, 'zookeeper needs servers'],
    [{ servers: [] }, 'zookeeper needs servers'],
    [{ servers: 'a:2181,' }, 'a server must be host:port'],
    [{ servers: 'a:99999' }, 'a server must be host:port'],
    [{ servers: 'http://a:2181' }, 'a server must be host:port'],
    [{ servers: 'a', chroot: 'apps' }, 'the chroot must be a path'],
    [{ servers: 'a', chroot: '/apps/' }, 'the chroot must be a path'],
    [{ servers: 'a', chroot: '/a/../b' }, 'the chroot must be a path'],
    [{ servers: 'a', prefix: '' }, 'the prefix is empty'],
    [{ servers: 'a', auth: 'me:secret' }, 'the options of auth must be an object'],
    [{ servers: 'a', auth: { user: 'a:b', password: 'c' } }, 'auth needs a user'],
    [{ servers: 'a', auth: { user: 'a' } }, 'auth needs a password'],
    [{ servers: 'a', tls: 'yes' }, 'tls must be true, false or'],
    [{ servers: 'a', sessionTimeout: 1.5 }, 'sessionTimeout must be a whole number'],
    [{ servers: 'a', sessiontimeout: 5_000 }, 'zookeeper has no option "sessiontimeout"'],
  ])('%j is refused', (options, message) => {
    const make = (): unknown => zookeeper(options as ZooKeeperOptions)
    expect(make).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) }),
    )
  })

  test.each([
    ['zookeeper:a:2181', 'is invalid'],
    ['zookeeper://', 'is invalid'],
    ['zookeeper://a:2181/x#y', 'has a #'],
    ['zookeeper://a?tls=maybe', 'true or false'],
    ['zookeeper://a?prefix=x&prefix=y', 'given twice'],
    ['zookeeper://a?ttl=5', 'has no option "ttl"'],
    // A question mark, or a slash, that nobody encoded.
    ['zookeeper://me:x?secret@a', 'is invalid: percent-encode special characters in a password'],
    ['zookeeper://me:secret?prefix=x@a', 'is invalid: percent-encode special characters in a password'],
    ['zookeeper://me:secret/x@a', 'is invalid: percent-encode special characters in a password'],
    ['zookeeper://me:1?secret@a', 'has no such option, only prefix'],
    ['zookeeper://me@a', 'a user without a password'],
    ['zookeeper://me:secret%@a', 'encodes nothing'],
    ['zookeeper://a?sessionTimeout=soon', 'sessionTimeout must be a whole number'],
    ['zookeeper://a,b:x', 'a server must be host:port'],
    ['zookeeper://a?ca=own.pem', 'ca in the URL of the ZooKeeper store is for TLS'],
    ['zookeeper://a?tls=true&cert=own.pem', 'both cert and key'],
    ['zookeeper://a?tls=true&ca=/nowhere', 'the file of ca in the URL of the ZooKeeper store cannot be read'],
  ])('L16: the URL %s is refused, and not repeated', async (url, message) => {
    const error = await failureOf(openStore(url))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) })
    expect(error.message).not.toContain('secret')
  })

  test('a URL names servers, chroot, user and prefix', async () => {
    await using store = await openStore(
      `zookeeper://app:p%40ss@127.0.0.1:${server.port},127.0.0.1:${server.port}/apps/billing?prefix=x&sessionTimeout=5000`,
    )
    await hold(store, claimOf('a/b'))
    expect(await server.ask('dump')).toMatch('/apps/billing/x/a%2Fb/c')
  })
})

test('M10: a password that is sent to another machine without TLS causes one warning per host', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  for (const tls of [true, false, false])
    await zookeeper({
      servers: ['127.0.0.1', '[::1]:1', 'zk-m10', 'zk-m10:1'],
      auth: { user: 'app', password: 'x' },
      tls,
    })[Symbol.asyncDispose]()
  const warning = { type: 'HoldfastWarning', code: 'HOLDFAST_PASSWORD_IN_CLEAR' }
  expect(emit.mock.calls).toEqual([[expect.stringMatching(/ZooKeeper goes to zk-m10 without TLS/), warning]])
  emit.mockRestore()
})

test('leases with another chroot or prefix are separate', async () => {
  const claim = claimOf('apart')
  for (const options of [{}, { chroot: '/one' }, { chroot: '/one/two' }, { prefix: 'other' }]) {
    await using store = storeOf(server, options)
    await hold(store, { ...claim, id: claimOf('').id })
    expect(await Array.fromAsync(store.inspect({ prefix: '' }, signal))).toHaveLength(1)
  }
})

test('nodes created with a user and password are refused to all others, with the reason', async () => {
  const own = { chroot: '/secured', auth: { user: 'app', password: 'right' } }
  await using store = storeOf(server, own)
  const claim = claimOf('a')
  const { token } = await hold(store, claim)
  for (const auth of [undefined, { user: 'app', password: 'wrong' }]) {
    await using other = storeOf(server, { ...own, auth })
    const asks = [
      other.acquire(claimOf('a'), signal),
      other.renew(claim, signal),
      other.annotate(claim, signal),
      other.release(claim, signal),
      other.break('a', { by: '' }, signal),
    ]
    for (const error of await Promise.all(asks.map(failureOf)))
      expect(error).toMatchObject({
        code: 'ACCESS_DENIED',
        message: expect.stringMatching(/may not do .* \(NOAUTH\)/),
      })
  }
  await using same = storeOf(server, own)
  expect((await same.renew(claim, signal))?.token).toBe(token)
})

test('a ttl that is too long for the sessions of the server is refused with the longest', async () => {
  await using store = storeOf(server)
  await hold(store, claimOf('longest', { ttl: 24_000 }))
  const error = await failureOf(store.acquire(claimOf('longer', { ttl: 60_000 }), signal))
  expect(error).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/at most 40000 ms, so the ttl can be at most 24000 ms.*maxSessionTimeout/),
  })
})

test('an unresponsive, missing or foreign server is reported within the limit of a request', async () => {
  const other = createServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  await using silent = await startProxy(server)
  silent.down.drop()
  for (const [port, message] of [
    [1, /127\.0\.0\.1:1: .*ECONNREFUSED/],
    [silent.port, /(no|did not) answer within/],
    [(other.address() as AddressInfo).port, /invalid data.*check that it is ZooKeeper/],
  ] as const) {
    await using locks = createLocks(storeOf({ port }), { ttl: 1_500 })
    const started = performance.now()
    const error = await failureOf(locks.acquire('a', { wait: 500 }))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(message) })
    expect(performance.now() - started).toBeLessThan(3_000)
  }
  other.close()
})

test('a server that is too old says so', async () => {
  const hello = new Writer().int(0).int(20_000).long(7n).buffer(new Uint8Array(16)).bool(false).frame()
  // As 3.4 does: it answers the first unknown request, and then stops responding.
  const old = createServer(socket => {
    socket.once('data', () => {
      socket.write(hello)
      socket.once('data', ([, , , , ...piece]) => {
        const xid = Buffer.from(piece).readInt32BE()
        socket.end(new Writer().int(xid).long(1n).int(-6).frame())
      })
    })
  }).listen(0, '127.0.0.1')
  await once(old, 'listening')
  await using store = storeOf(old.address() as AddressInfo)
  expect(await failureOf(store.acquire(claimOf('old'), signal))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringContaining('use ZooKeeper 3.6 or later'),
  })
  old.close()
})

test('a server that closes a connection at once is reported with the likely reasons', async () => {
  await using full = await startZooKeeper({ config: { maxClientCnxns: 1 } })
  await using one = storeOf(full)
  await hold(one, claimOf('one'))
  await using two = storeOf(full)
  for (let round = 0; round < 5; round += 1)
    expect(await failureOf(two.acquire(claimOf('two'), signal))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/closed the connection at once .*majority.*lags behind.*maxClientCnxns.*TLS/),
    })
})

test('it works over TLS, presents a certificate, and refuses an untrusted server', async () => {
  const secure = await reservePort()
  const keyStore = join(newFolder('tls'), 'server.pem')
  writeFileSync(keyStore, readFileSync(pem('server.key'), 'utf8') + readFileSync(pem('server.pem'), 'utf8'))
  await using _server = await startZooKeeper({
    config: {
      secureClientPort: secure.number,
      secureClientPortAddress: '127.0.0.1',
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      'ssl.keyStore.location': keyStore,
      'ssl.trustStore.location': pem('ca.pem'),
    },
  })
  const ca = readFileSync(pem('ca.pem'))
  const [cert, key] = [readFileSync(pem('client.pem')), readFileSync(pem('client.key'))]
  const warnings: Error[] = []
  const warn = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warn)
  for (const host of ['localhost', '127.0.0.1']) {
    await using store = zookeeper({ servers: `${host}:${secure.number}`, tls: { ca, cert, key } })
    await hold(store, claimOf(`tls-${host}`))
  }
  process.off('warning', warn)
  expect(warnings).toEqual([])
  const url = `zookeeper://localhost:${secure.number}?tls=true`
  const shown = `&cert=${pem('client.pem')}&key=${pem('client.key')}`
  await using byUrl = await openStore(`${url}&ca=${pem('ca.pem')}${shown}`)
  await hold(byUrl, claimOf('by-url'))
  for (const [options, message] of [
    [shown, /(self.signed|unable to verify|unable to get).*certificate/],
    [`&ca=${pem('ca.pem')}`, /TLS failed: .*certificate|closed the connection at once .*TLS/], // an alert may be overtaken
  ] as const) {
    await using refused = await openStore(url + options)
    expect(await failureOf(refused.acquire(claimOf('refused'), signal))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(message),
    })
  }
  await secure.release()
})
