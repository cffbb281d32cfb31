import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reservePort } from '../../../lab/servers/port.ts'
import { startProxy } from '../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { ROOT } from '../../../test/script-node.ts'
import { doctor, finding } from './doctor.ts'
import { folder, holdfast, start, until } from './holdfast.ts'

describe('holdfast doctor over SQLite', () => {
  test('finds nothing in a private file, and leaves no lease', async () => {
    const store = `sqlite:${join(folder, 'leases.db')}`
    expect(await doctor(store)).toEqual({
      code: 0,
      levels: { lease: 'ok', 'sqlite-file-system': 'ok', 'sqlite-file-mode': 'ok', 'sqlite-folder-mode': 'ok' },
    })
    expect(await holdfast(['ls', '--store', store])).toMatchObject({ out: 'no name is held\n' })
  })

  test('warns of a file and a folder that other users can change', async () => {
    const path = join(folder, 'leases.db')
    await doctor(`sqlite:${path}`)
    chmodSync(path, 0o666)
    chmodSync(folder, 0o777)
    const { code, levels } = await doctor(`sqlite:${path}`)
    expect(code).toBe(1)
    expect(levels).toMatchObject({ 'sqlite-file-mode': 'warning', 'sqlite-folder-mode': 'warning' })
  })

  test('what is wrong was printed after what is ok, and nothing counted it', async () => {
    const store = `sqlite:${join(folder, 'leases.db')}`
    expect((await holdfast(['doctor', '--store', store])).out).toMatch(
      /^ok {7}lease: acquired, .*\n(ok {7}sqlite-[a-z-]+: .*\n){3}\n4 ok\n$/,
    )
    chmodSync(join(folder, 'leases.db'), 0o666)
    expect(await holdfast(['doctor', '--store', store])).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /^warning {2}sqlite-file-mode: .*\n {9}\w.*\n {9}\w.*\n\n(ok {7}.*\n){3}\n1 warning, 3 ok\n$/,
      ),
    })
    expect(await holdfast(['doctor', '-q', '--store', store])).toEqual({ code: 1, signal: null, out: '', err: '' })
    expect(await holdfast(['doctor', '-q', '--store', `${store}/no`])).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringMatching(/^holdfast: lease: .*\n$/),
    })
  })

  test('reports a folder that does not exist, with exit code 2', async () => {
    const { code, levels } = await doctor(`sqlite:${join(folder, 'missing', 'leases.db')}`)
    expect({ code, levels }).toEqual({ code: 2, levels: { lease: 'problem' } })
  })
})

describe('holdfast doctor over Redis', () => {
  let sound: RedisServer
  let replica: RedisServer
  let evicting: RedisServer

  beforeAll(async () => {
    const users = [
      'app on >secret ~* &* +@all -info -config -del',
      'mute on >secret ~* resetchannels +@all',
      'reader on >secret %R~* &* +@all',
    ]
    ;[sound, evicting] = await Promise.all([
      startRedis({ appendonly: 'everysec', users }),
      startRedis({ maxmemoryPolicy: 'allkeys-lru', config: { maxmemory: '100mb' } }),
    ])
    replica = await startRedis({ replicaOf: evicting })
  })

  afterAll(async () => {
    await Promise.all([sound, replica, evicting].map(server => server?.stop()))
  })

  test('finds nothing on a server that persists, and leaves no key', async () => {
    expect(await doctor(sound.url)).toEqual({
      code: 0,
      levels: {
        ...{ lease: 'ok', tls: 'ok', clock: 'ok', version: 'ok', 'redis-notifications': 'ok' },
        ...{ 'redis-role': 'ok', 'redis-eviction': 'ok', 'redis-persistence': 'ok', 'redis-failover': 'ok' },
      },
    })
    expect(await sound.call('KEYS', '*doctor*')).toEqual([])
  })

  test('finds eviction, a missing append-only file and replicas', async () => {
    const { code, levels } = await doctor(evicting.url)
    expect(code).toBe(2)
    expect(levels).toMatchObject({
      lease: 'ok',
      'redis-eviction': 'problem',
      'redis-persistence': 'warning',
      'redis-failover': 'warning',
    })
  })

  test('finds an append-only file that is not flushed', async () => {
    await sound.call('CONFIG', 'SET', 'appendfsync', 'no')
    expect(await doctor(sound.url)).toMatchObject({ code: 1, levels: { 'redis-persistence': 'warning' } })
    await sound.call('CONFIG', 'SET', 'appendfsync', 'always')
    expect(await doctor(sound.url)).toMatchObject({ code: 0, levels: { 'redis-persistence': 'ok' } })
  })

  test('finds a connection without TLS to what may be another machine, unless it uses TLS', async () => {
    const secure = await reservePort()
    const [cert, key, ca] = ['server.pem', 'server.key', 'ca.pem'].map(file => join(ROOT, 'test/certificates', file))
    const config = { 'tls-cert-file': `${cert}`, 'tls-key-file': `${key}`, 'tls-ca-cert-file': `${ca}` }
    await using server = await startRedis({
      config: { ...config, 'tls-port': secure.number, 'tls-auth-clients': 'no' },
    })
    // It reaches this machine, but doctor does not know that.
    expect(await finding(`redis://0.0.0.0:${server.port}`, 'tls')).toBe(
      'warning: the connection to 0.0.0.0 does not use TLS',
    )
    expect(await finding(server.url, 'tls')).toBe('ok: the server is on this machine')
    const env = { HOLDFAST_STORE: `rediss://localhost:${secure.number}`, NODE_EXTRA_CA_CERTS: `${ca}` }
    expect((await holdfast(['doctor'], { env })).out).toContain('tls: the connection uses TLS')
    await secure.release()
  })

  test('finds the same on a server whose CONFIG is disabled', async () => {
    await using server = await startRedis({ appendonly: 'everysec', config: { 'rename-command CONFIG': '""' } })
    const { code, levels } = await doctor(server.url)
    expect(code).toBe(0)
    expect(levels).toMatchObject({ 'redis-eviction': 'ok', 'redis-persistence': 'ok', 'redis-notifications': 'ok' })
  })

  test('finds that the server is a replica', async () => {
    const { code, levels } = await doctor(replica.url)
    expect(code).toBe(2)
    expect(levels).toMatchObject({ lease: 'problem', 'redis-role': 'problem' })
  })

  test('reports what this user may neither ask for nor delete', async () => {
    const { code, levels } = await doctor(sound.url.replace('//', '//app:secret@'))
    expect(code).toBe(1)
    expect(levels).toMatchObject({ lease: 'ok', leftover: 'ok', 'redis-info': 'warning' })
  })

  test('removes its name also when a signal ends it', async () => {
    const own = async (): Promise<string[]> => {
      const keys = (await sound.call('KEYS', '*holdfast-doctor-*')) as string[]
      return keys.filter(key => !key.includes(':gone:')) // a withdrawn request leaves one that expires by itself
    }
    await using proxy = await startProxy(sound)
    proxy.down.delay(300)
    const running = start(['doctor', '--store', `redis://127.0.0.1:${proxy.port}`])
    await until(async () => (await own()).length > 0, 'the trial has begun')
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 143, err: expect.stringContaining('stopped by SIGTERM') })
    expect(await own()).toEqual([])
  })

  test('finds what this user may not do, by trying', async () => {
    const { code, levels } = await doctor(sound.url.replace('//', '//reader:secret@'))
    expect(code).toBe(2)
    expect(levels).toMatchObject({ lease: 'problem', version: 'ok' })
    const mute = await doctor(sound.url.replace('//', '//mute:secret@'))
    expect(mute).toMatchObject({ code: 1, levels: { lease: 'ok', 'redis-notifications': 'warning' } })
  })

  test('reports a server that is paused, in limited time', async () => {
    await evicting.pause()
    const { code, levels } = await doctor(evicting.url)
    evicting.resume()
    expect({ code, levels }).toEqual({ code: 2, levels: { lease: 'problem' } })
  })
})
