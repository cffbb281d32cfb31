import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { versionsOf } from '../../engines/redis.ts'
import { findBinary } from '../binary.ts'
import { startRedis } from '../redis.ts'

// Valkey calls itself Redis 7.2.4 in the field that Redis has for its version.
test('Valkey is named as Valkey, by its own version', async () => {
  await using server = await startRedis()
  const { path, env } = findBinary('redis-server', 'redis-server')
  const says = execFileSync(path, ['--version'], { encoding: 'utf8', env: { ...process.env, ...env } })
  const [, name = '', version] = /^(Redis|Valkey) server v=([\d.]+)/.exec(says) ?? []
  expect(await versionsOf(server)).toEqual({ [name.toLowerCase()]: version })
})

test('a password is needed and known', async () => {
  await using server = await startRedis({ password: 'secret' })
  expect(await server.call('PING')).toBe('PONG')
  expect(server.url).toBe(`redis://:secret@127.0.0.1:${server.port}`)
})

test('a user may do only what its rules allow', async () => {
  await using server = await startRedis({ users: ['app on >secret ~holdfast:* +set'] })
  expect(await server.call('ACL', 'DRYRUN', 'app', 'SET', 'holdfast:a', '1')).toBe('OK')
  expect(await server.call('ACL', 'DRYRUN', 'app', 'SET', 'other', '1')).toMatch('no permissions')
  expect(await server.call('ACL', 'DRYRUN', 'app', 'GET', 'holdfast:a')).toMatch('no permissions')
})

test('an append-only file keeps what was written over a kill', async () => {
  await using server = await startRedis({ appendonly: 'always', maxmemoryPolicy: 'allkeys-lru' })
  await server.call('SET', 'name', 'value')
  await server.restart()
  expect(await server.call('GET', 'name')).toBe('value')
  expect(await server.call('CONFIG', 'GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'allkeys-lru'])
})

test('a replica has what its master has, and is read-only', async () => {
  await using master = await startRedis({ password: 'secret' })
  await master.call('SET', 'name', 'value')
  await using replica = await startRedis({ replicaOf: master })
  expect(await replica.call('GET', 'name')).toBe('value')
  await expect(replica.call('SET', 'name', 'other')).rejects.toThrow('READONLY')
})
