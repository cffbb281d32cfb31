import { expect, test } from 'vitest'
import { version as etcd } from './etcd.ts'
import { tlsFinding } from './finding.ts'
import { version as mysql } from './mysql.ts'
import { version as nats, replication } from './nats.ts'
import { version as postgres, tls } from './postgres.ts'
import { setting, settings } from './redis.ts'
import { fileSystem } from './sqlite.ts'
import { version as zookeeper } from './zookeeper.ts'

// What the servers of the tests cannot be made to say.

test('a connection to another machine needs TLS', () => {
  expect(tlsFinding('cache.internal', false)).toMatchObject({ id: 'tls', level: 'warning' })
  for (const [host, isEncrypted] of [
    ['cache.internal', true],
    ['127.0.0.1', false],
    ['[::1]', false],
    ['%2Frun%2Fpostgresql', false],
  ] as const)
    expect(tlsFinding(host, isEncrypted)).toMatchObject({ level: 'ok' })
})

test('each server of a cluster needs TLS, not only the first', () => {
  expect(tlsFinding(['127.0.0.1', 'etcd-2.internal'], false)).toMatchObject({
    level: 'warning',
    what: 'the connection to etcd-2.internal does not use TLS',
  })
  expect(tlsFinding(['127.0.0.1', '::1'], false)).toMatchObject({ level: 'ok' })
})

test('a certificate that is not verified is a warning', () => {
  expect(tls(new URL('postgres://db.internal/app?sslmode=no-verify'))).toMatchObject({ id: 'tls', level: 'warning' })
  expect(tls(new URL('postgres://db.internal/app?sslmode=require'))).toMatchObject({ id: 'tls', level: 'ok' })
  expect(tls(new URL('postgres://db.internal/app'))).toMatchObject({ id: 'tls', level: 'warning' })
})

test('a version that is not tested is a warning', () => {
  const all = [etcd('3.6.1'), etcd('2.3.8'), zookeeper('3.6.4'), mysql('8.4.2'), mysql('11.4.3-MariaDB-log')]
  all.push(nats('2.10.27'), nats('3.0.0'))
  all.push(...['14.9', '18.0 (Debian 18.0-1)'].map(version => postgres({ version })))
  expect(all.map(({ level }) => level)).toEqual(all.map(() => 'warning'))
  const tested = [etcd('3.5.9'), zookeeper('3.9.2'), zookeeper(undefined), mysql('10.11.6-MariaDB-0+deb12u1')]
  tested.push(nats('2.15.1'), nats(undefined))
  expect(tested.map(({ level }) => level)).toEqual(tested.map(() => 'ok'))
  for (const info of [{ redis_version: '6.2.7' }, { redis_version: '9.0.0' }, { valkey_version: '7.2.5' }])
    expect(settings(info, undefined, undefined)[0]).toMatchObject({ id: 'version', level: 'warning' })
})

test('NATS before 2.10 is a problem, and one replica in a cluster a warning', () => {
  expect(nats('2.9.25')).toMatchObject({ level: 'problem' })
  expect([replication(1, true), replication(3, true), replication(1, false)].map(({ level }) => level)).toEqual([
    'warning',
    'ok',
    'ok',
  ])
})

test('an append-only file that Redis cannot write is a problem', () => {
  const found = settings({ aof_enabled: '1', aof_last_write_status: 'err' }, 'everysec', undefined)
  expect(found.find(({ id }) => id === 'redis-persistence')).toMatchObject({ level: 'problem' })
})

test('a setting that a server does not know, or does not tell, is unknown', async () => {
  const told = (answer: Promise<unknown>): Promise<string | undefined> => setting({ call: () => answer }, 'appendfsync')
  expect(await told(Promise.resolve(['appendfsync', 'no']))).toBe('no')
  expect(await told(Promise.resolve([]))).toBeUndefined()
  expect(await told(Promise.reject(new Error("ERR unknown command 'CONFIG'")))).toBeUndefined()
})

test('a network file system is a problem for SQLite', () => {
  for (const kind of ['network', 'shared'] as const)
    expect(fileSystem({ type: 'any', kind })).toMatchObject({ id: 'sqlite-file-system', level: 'problem' })
  expect(fileSystem(undefined)).toMatchObject({ level: 'ok' })
})
