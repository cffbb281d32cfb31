import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { until } from '../../../../lab/servers/until.ts'
import { checkEtcd } from '../../../cli/doctor/etcd.ts'
import { connect, openStore } from '../../../connect.ts'
import { subscribe } from '../../../contract/events.ts'
import { createLocks } from '../../../create-locks.ts'
import { type EtcdOptions, etcd } from '../index.ts'
import { startRelay } from './relay.ts'
import { base64, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

const file = (name: string): string => join(import.meta.dirname, '../../../../test/certificates', name)
const pem = (name: string): Buffer => readFileSync(file(name))

describe('with authentication', () => {
  let server: EtcdServer
  const user = { user: 'app', password: 'p@ss/w:rd%#' }

  beforeAll(async () => {
    server = await startEtcd({ args: ['--auth-token-ttl=1'] })
    await enableUsers(server, user)
  })
  afterAll(() => server.stop())

  test('a user with the documented permissions can do everything, but nothing under another prefix', async () => {
    await using store = storeOf([server], user)
    const claim = claimOf('a')
    await hold(store, claim)
    const waiter = claimOf('a', { queue: true })
    await store.acquire(waiter, signal)
    const controller = new AbortController()
    await store.watch?.(waiter, () => {}, controller.signal)
    controller.abort()
    expect(await look(store, { prefix: '' })).toHaveLength(2)
    await store.renew({ ...claim, ttl: 20_000 }, signal)
    expect(await store.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
    expect(await store.break('a', { by: 'test' }, signal)).toBeDefined()
    expect(await store.acquire(waiter, signal)).toMatchObject({ held: true })
    expect(await store.release(waiter, signal)).toBe('released')
    expect(await store.release(waiter, signal)).toBe('gone')
    await using elsewhere = storeOf([server], { ...user, prefix: 'other' })
    for (const refused of [() => hold(elsewhere, claimOf('a')), () => elsewhere.annotate(claimOf('a'), signal)])
      expect(await failureOf(refused())).toMatchObject({
        code: 'ACCESS_DENIED',
        message: expect.stringMatching(/permissions listed in docs\/stores\/etcd.md/),
      })
  })

  test('an expired auth token is replaced, also while a lease is held or waited for', async () => {
    await using store = storeOf([server], user)
    const locks = createLocks(store, { ttl: 9_000 })
    const lease = await locks.acquire('b')
    const waiting = locks.acquire('b')
    await sleep(2_500) // tokens live for 1 s when they are not used
    expect(await lease.extend()).toBeGreaterThan(5_000)
    await sleep(2_500)
    await lease.release()
    await (await waiting).release()
    await server.restart() // it forgets all tokens
    await until('it serves', () => locks.using('b', async () => true))
    await locks.close()
  })

  test('many requests with an expired auth token share one login', async () => {
    await using relay = await startRelay(server)
    await using store = storeOf([relay], user)
    await hold(store, claimOf('c'))
    await sleep(2_500)
    const names = Array.from({ length: 50 }, (_, index) => `many/${index}`)
    await Promise.all(names.map(name => hold(store, claimOf(name, { queue: true }))))
    expect(relay.requests.filter(request => request.includes('auth/authenticate'))).toHaveLength(2)
  })

  test('a wrong password and a missing user are reported without the password', async () => {
    for (const access of [{ user: 'app', password: 's3cret' }, { user: 'nobody', password: 's3cret' }, {}]) {
      await using store = storeOf([server], access)
      const error = await failureOf(hold(store, claimOf('d')))
      expect(error.code).toBe('ACCESS_DENIED')
      expect(error.message).toMatch(/user/)
      expect(JSON.stringify(error) + error.stack + String(error.cause)).not.toMatch('s3cret')
    }
  })

  test('a user without permissions is refused, and served once it has them; so is a holder that lost them', async () => {
    const [access, role] = [
      { user: 'new', password: 'x' },
      { user: 'new', role: 'holdfast' },
    ]
    await callAsRoot(server, 'auth/user/add', { name: 'new', password: 'x' })
    await using store = storeOf([server], access)
    const locks = createLocks(store)
    const refused = { code: 'ACCESS_DENIED', message: expect.stringMatching(/permissions listed in/) }
    expect(await failureOf(locks.acquire('rights', { wait: 5_000 }))).toMatchObject(refused)
    expect(await failureOf(locks.inspect('rights'))).toMatchObject(refused)
    expect(await failureOf(locks.break('rights'))).toMatchObject(refused)
    await callAsRoot(server, 'auth/user/grant', role)
    await using lease = await locks.acquire('rights')
    await callAsRoot(server, 'auth/user/revoke', { name: 'new', role: 'holdfast' })
    expect(await failureOf(lease.extend())).toMatchObject(refused)
    lease.assertHeld()
    await callAsRoot(server, 'auth/user/grant', role)
    expect(await lease.extend()).toBeGreaterThan(0)
  })

  test('S8: while a password is changed and restored, waiter and holder retry', async () => {
    const changed = (password: string): Promise<unknown> =>
      callAsRoot(server, 'auth/user/changepw', { name: user.user, password })
    await using store = storeOf([server], user)
    await using locks = createLocks(store, { ttl: 20_000 })
    await using lease = await locks.acquire('rotation')
    let failures = 0
    const stop = subscribe('request_failed', ({ name }) => {
      failures += Number(name === 'late')
    })
    await changed('another')
    const waiting = locks.acquire('late', { wait: 20_000 })
    await until('it was refused more than once', () => Promise.resolve(failures > 1))
    const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/refused the user name or password/) }
    expect(await failureOf(lease.extend())).toMatchObject(refused)
    await changed(user.password)
    await (await waiting).release()
    expect(await lease.extend()).toBeGreaterThan(10_000)
    stop()
  })

  test('a URL contains the user and the password', async () => {
    const access = `${user.user}:${encodeURIComponent(user.password)}`
    await using store = await openStore(`etcd://${access}@127.0.0.1:${server.port}`)
    await hold(store, claimOf('e'))
  })
})

test('a user is ignored if authentication is off', async () => {
  await using server = await startEtcd()
  await using store = storeOf([server], { user: 'app', password: 'x' })
  await hold(store, claimOf('a'))
})

test('a server whose gateway is off is reported at once, in one sentence', async () => {
  await using server = await startEtcd({ args: ['--enable-grpc-gateway=false'] })
  expect(await failureOf(connect(`etcd://127.0.0.1:${server.port}`))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringMatching(/etcd 3.4 or later with its JSON gateway.*--enable-grpc-gateway/),
  })
})

test('a configuration file of etcd 3.4 that leaves the gateway off is reported with what to set', async () => {
  const args: string[] = []
  await using server = await startEtcd({ args })
  const line = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').split('\0')
  const flags = line.filter(flag => /^--[^=]+=/.test(flag)) // an unpacked server is started by a loader
  const settings = flags.map(flag => flag.replace('--', '').replace('=', ': '))
  if (process.env.HOLDFAST_SERVERS) settings.push('enable-grpc-gateway: false') // the default of 3.4 only
  const path = join(server.folder, 'etcd.yaml')
  writeFileSync(path, settings.join('\n'))
  args.push(`--config-file=${path}`)
  await server.restart()
  await using store = storeOf([server])
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringMatching(/configuration file of etcd 3.4 needs enable-grpc-gateway: true/),
  })
})

test('a port that serves gRPC only is reported with the option that names the other one', async () => {
  const server = createServer() // HTTP/2 without TLS, as etcd with --listen-client-http-urls
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await using store = storeOf([server.address() as AddressInfo])
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/--listen-client-http-urls/),
  })
  server.close()
})

describe('with TLS', () => {
  const server = ['--cert-file', '--key-file'].map(
    (flag, index) => `${flag}=${file(['server.pem', 'server.key'][index] as string)}`,
  )
  const mutual = [...server, '--client-cert-auth', `--trusted-ca-file=${file('ca.pem')}`]

  test('leases are kept, waited for and passed on', async () => {
    await using secure = await startEtcd({ args: server })
    const locks = await connect(`etcds://localhost:${secure.port}?ca=${encodeURIComponent(file('ca.pem'))}`)
    const lease = await locks.acquire('a')
    const waiting = locks.acquire('a')
    await until('it waits', async () => (await locks.inspect('a')).waiters.length === 1)
    await lease.release()
    await (await waiting).release()
    await locks.close()
  })

  test('a client presents its certificate if the server requires one', async () => {
    await using secure = await startEtcd({ args: mutual })
    const at = [`127.0.0.1:${secure.port}`]
    await using store = etcd({
      endpoints: at,
      tls: { ca: pem('ca.pem'), cert: pem('client.pem'), key: pem('client.key') },
    })
    await hold(store, claimOf('a'))
    const files = ['ca=ca.pem', 'cert=client.pem', 'key=client.key'].map(each => each.replace('=', `=${file('')}/`))
    await using again = await openStore(`etcds://${at[0]}?${files.join('&')}`)
    expect((await again.acquire(claimOf('a'), signal)).held).toBe(false)
    await using bare = etcd({ endpoints: at, tls: { ca: pem('ca.pem') } })
    expect(await failureOf(hold(bare, claimOf('a')))).toMatchObject({
      code: 'ACCESS_DENIED',
      message: expect.stringMatching(/give cert and key/),
    })
  })

  test('a certificate that is not for clients is refused with what it needs', async () => {
    const trusted = `--trusted-ca-file=${file('not-for-clients.pem')}`
    await using secure = await startEtcd({ args: [...server, '--client-cert-auth', trusted] })
    const tls = { ca: pem('ca.pem'), cert: pem('not-for-clients.pem'), key: pem('not-for-clients.key') }
    await using store = etcd({ endpoints: [`127.0.0.1:${secure.port}`], tls })
    expect((await failureOf(hold(store, claimOf('a')))).message).toMatch(/extended key usage clientAuth/)
  })

  test('with authentication, a client certificate with a common name is refused with what to do', async () => {
    const args: string[] = []
    await using secure = await startEtcd({ args })
    const user = { user: 'app', password: 'x' }
    await enableUsers(secure, user)
    args.push(...mutual)
    await secure.restart()
    const tls = { ca: pem('ca.pem'), cert: pem('client.pem'), key: pem('client.key') }
    await using store = etcd({ endpoints: [`127.0.0.1:${secure.port}`], tls, ...user })
    const refused = { code: 'ACCESS_DENIED', message: expect.stringMatching(/use a certificate without CN/) }
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject(refused)
    const files = ['ca=ca.pem', 'cert=client.pem', 'key=client.key'].map(each => each.replace('=', `=${file('')}/`))
    const url = `etcds://app:x@127.0.0.1:${secure.port}?${files.join('&')}`
    expect(await failureOf(checkEtcd(url, signal))).toMatchObject(refused)
  })

  test('a certificate that is not trusted, or of another name, is refused', async () => {
    await using secure = await startEtcd({ args: server })
    const at = `127.0.0.1:${secure.port}`
    const wrong: Record<string, EtcdOptions> = {
      untrusted: { endpoints: [at], tls: {} },
      'of another name': { endpoints: [at], tls: { ca: pem('ca.pem'), servername: 'elsewhere' } },
    }
    for (const [what, options] of Object.entries(wrong)) {
      await using store = etcd(options)
      expect(await failureOf(hold(store, claimOf('a'))), what).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/certificate of the etcd server/),
      })
    }
  })

  test('a port without TLS is found out, and one with TLS is suspected', async () => {
    await using plain = await startEtcd()
    await using secure = await startEtcd({ args: server })
    await using toPlain = etcd({ endpoints: [`127.0.0.1:${plain.port}`], tls: {} })
    await using toSecure = etcd({ endpoints: [`127.0.0.1:${secure.port}`] })
    const [a, b] = [await failureOf(hold(toPlain, claimOf('a'))), await failureOf(hold(toSecure, claimOf('a')))]
    expect(a).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/does not speak TLS; the URL/),
    })
    expect(b.message).toMatch(/may be because it speaks TLS: etcds:/)
  })
})

async function callAsRoot(server: EtcdServer, path: string, body: object): Promise<void> {
  const { token } = await server.call<{ token: string }>('auth/authenticate', { name: 'root', password: 'root' })
  await server.call(path, body, token)
}

async function enableUsers(server: EtcdServer, { user, password }: { user: string; password: string }): Promise<void> {
  await server.call('auth/user/add', { name: 'root', password: 'root' })
  await server.call('auth/role/add', { name: 'root' })
  await server.call('auth/user/grant', { user: 'root', role: 'root' })
  await server.call('auth/user/add', { name: user, password })
  await server.call('auth/role/add', { name: 'holdfast' })
  const perm = { permType: 'READWRITE', key: base64('holdfast\t'), range_end: base64('holdfast\n') }
  await server.call('auth/role/grant', { name: 'holdfast', perm })
  await server.call('auth/user/grant', { user, role: 'holdfast' })
  await server.call('auth/enable', {})
}
