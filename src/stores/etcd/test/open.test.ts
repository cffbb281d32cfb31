import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { connect, openStore } from '../../../connect.ts'
import { etcd } from '../index.ts'
import { claimOf, failureOf, hold, signal } from './support.ts'

let server: EtcdServer

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

test('opens what the URL names: several servers, and a prefix', async () => {
  const claim = claimOf('a')
  await using store = await openStore(`etcd://127.0.0.1:1,${server.endpoint}/?prefix=team%20a`)
  expect(store.kind).toBe('etcd')
  await hold(store, claim)
  await using same = etcd({ endpoints: [server.endpoint], prefix: 'team a' })
  expect((await same.acquire(claimOf('a'), signal)).held).toBe(false)
  await using elsewhere = await openStore(`etcd://${server.endpoint}`)
  await hold(elsewhere, claimOf('a'))
})

test('L16: says what is wrong with a URL, and never what the password is', async () => {
  const wrong: Record<string, RegExp> = {
    'etcd://': /has no host/,
    'etcd:': /is invalid/,
    'etcd:localhost': /is invalid/,
    'etcd://user:s3cret@host:99999': /port 99999/,
    'etcd://user:s3cret@ho st': /an endpoint of etcd must be host:port/,
    'etcd://user:s3cret@a,,b': /an endpoint of etcd must be host:port/,
    'etcd://user:s3cret@host/path': /has a path/,
    'etcd://user:s3cret@host#1': /has a #/,
    'etcd://user:s3cret%@host': /a % that encodes nothing/,
    'etcd://user@host': /needs both a user and a password/,
    'etcd://:s3cret@host': /needs both a user and a password/,
    'etcd://user:s3cret@host?ttl=5': /no option "ttl", only prefix, minTtl, ca, cert, key/,
    'etcd://user:s3cret@host?prefix=': /prefix is empty/,
    'etcd://user:s3cret@host?prefix=a&prefix=b': /prefix is given twice/,
    'etcd://user:s3cret@host?ca=/etc/ca.pem': /ca in the URL of an etcd store is for TLS: use etcds/,
    'etcds://user:s3cret@host?ca=/nowhere/ca.pem': /the file of ca .* cannot be read: ENOENT/,
    // A question mark that nobody encoded.
    'etcd://user:x?s3cret@host': /is invalid: percent-encode special characters in a password/,
    'etcd://user:s3cret?x@host': /is invalid: percent-encode special characters in a password/,
    'etcd://user:s3cret?prefix=x@host': /is invalid: percent-encode special characters in a password/,
    'etcd://user:1?s3cret=1@host': /has no such option, only prefix, minTtl, ca, cert, key/,
    'etcds://user:s3cret@host?cert=/dev/null': /needs both cert and key/,
  }
  for (const [url, message] of Object.entries(wrong)) {
    const error = await failureOf(openStore(url))
    expect(error, url).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) })
    expect(error.message).not.toMatch('s3cret')
  }
})

test('M10: a password that is sent to another machine without TLS causes one warning per host', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  for (const tls of [{}, undefined, undefined])
    await etcd({ endpoints: ['127.0.0.1', '[::1]:1', 'etcd-m10', 'etcd-m10:1'], user: 'app', password: 'x', tls })[
      Symbol.asyncDispose
    ]()
  const warning = { type: 'HoldfastWarning', code: 'HOLDFAST_PASSWORD_IN_CLEAR' }
  expect(emit.mock.calls).toEqual([[expect.stringMatching(/etcd goes to etcd-m10 without TLS/), warning]])
  emit.mockRestore()
})

test.each([
  [{ endpoint: 'localhost' }, /etcd has no option "endpoint", only endpoints, tls/],
  ['localhost:2379', /options of etcd must be an object/],
  [{ endpoints: 'localhost:2379' }, /endpoints must be a list/],
  [{ endpoints: [] }, /endpoints must be a list/],
  [{ endpoints: ['http://localhost:2379'] }, /must be host:port, such as localhost:2379, not "http:/],
  [{ endpoints: ['localhost:0'] }, /must be host:port/],
  [{ endpoints: [2379] }, /must be host:port/],
  [{ prefix: '' }, /prefix is empty/],
  [{ prefix: 'a\tb' }, /control character/],
  [{ user: 'app' }, /both user and password/],
  [{ password: 's3cret' }, /both user and password/],
  [{ user: 'app', password: 5 }, /password must be a string/],
  [{ tls: true }, /options of tls must be an object/],
  [{ tls: { pfx: '' } }, /tls has no option "pfx"/],
  [{ tls: { key: '' } }, /needs both cert and key/],
  [{ tls: { cert: 'a', key: 'b' } }, /Node cannot use the option tls, so correct it: .*no start line/],
  [{ tls: { passphrase: 123_456 } }, /^the passphrase of tls must be a string, not "number"$/],
  [{ tls: { ca: 5 } }, /Node cannot use the option tls, so correct it: .*Received type number/],
])('refuses the options %o', (options, message) => {
  expect(() => etcd(options as object)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }),
  )
})

test('takes IPv6 addresses, and port 2379 where none is given', async () => {
  for (const endpoint of ['[::1]:1', 'localhost', '::1']) {
    if (endpoint === '::1') expect(() => etcd({ endpoints: [endpoint] })).toThrow(/must be host:port/)
    else await etcd({ endpoints: [endpoint] })[Symbol.asyncDispose]()
  }
})

test('reports that none of the endpoints responds', async () => {
  await using store = etcd({ endpoints: ['127.0.0.1:1', '127.0.0.1:2'] })
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/cannot be reached: .*ECONNREFUSED/),
  })
})

test('a lease is renewed in a thread that opens the same store by its URL', async () => {
  const locks = await connect(`etcd://${server.endpoint}?prefix=thread`, { heartbeat: 'thread', ttl: 3_000 })
  const lease = await locks.acquire('a', { maxBlocked: 10_000 })
  const end = performance.now() + 5_000
  while (performance.now() < end);
  lease.assertHeld()
  expect(await lease.extend(20_000)).toBeGreaterThan(15_000)
  await lease.release()
  expect((await locks.inspect('a')).holders[0]).toBeUndefined()
  await locks.close()
})
