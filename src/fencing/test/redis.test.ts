import { GlideClient } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { monitor } from '../../../test/monitor.ts'
import { failureOf } from '../../../test/support.ts'
import { type RedisClient, redisFence } from '../redis/index.ts'
import { holder, stale } from './support.ts'

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const PUSH = "return redis.call('rpush', KEYS[1], ARGV[1])"

const clients: readonly [string, () => Promise<{ client: RedisClient; close: () => unknown }>][] = [
  [
    'ioredis',
    async () => {
      const own = new Redis(server.port, { keyPrefix: 'io:', lazyConnect: true })
      return { client: own, close: () => own.disconnect() }
    },
  ],
  [
    'iovalkey',
    async () => {
      const own = new Valkey(server.port, { lazyConnect: true })
      return { client: own, close: () => own.disconnect() }
    },
  ],
  ['node-redis', async () => ({ client: createClient({ url: server.url }), close: () => {} })],
  [
    'valkey-glide',
    async () => {
      const own = await GlideClient.createClient({
        addresses: [{ host: server.host, port: server.port }],
        requestTimeout: 2_000,
      })
      return { client: own, close: () => own.close() }
    },
  ],
]

test.each(clients)('writes over %s are accepted until a newer holder was seen', async (name, open) => {
  const { client: own, close } = await open()
  const fence = redisFence(own)
  await fence.set(holder(name, 7), `{${name}}:a`, 'first')
  await fence.set(holder(name, 7), `{${name}}:a`, 'second', { ttl: 60_000 })
  expect(await fence.eval(holder(name, 8), { script: PUSH, keys: [`{${name}}:list`], args: ['x'] })).toEqual(
    expect.anything(),
  )
  await expect(fence.set(holder(name, 7), `{${name}}:a`, 'third')).rejects.toEqual(stale(7n, 8n))
  const late = fence.eval(holder(name, 7), { script: PUSH, keys: [`{${name}}:list`], args: ['y'] })
  await expect(late).rejects.toEqual(stale(7n, 8n))
  await fence.touch(holder(name, 9), `{${name}}:a`)
  await expect(fence.touch(holder(name, 8), `{${name}}:a`)).rejects.toEqual(stale(8n, 9n))
  const prefix = name === 'ioredis' ? 'io:' : ''
  expect(await client.get(`${prefix}{${name}}:a`)).toBe('second')
  expect(await client.pttl(`${prefix}{${name}}:a`)).toBeGreaterThan(50_000)
  expect(await client.lrange(`${prefix}{${name}}:list`, 0, -1)).toEqual(['x'])
  await fence.close()
  close()
})

test('a write is one command, and the script is sent once', async () => {
  using watcher = await monitor(server)
  const sent = async (): Promise<string[]> =>
    (await watcher.all())
      .filter(({ command, inScript }) => command.startsWith('eval') && !inScript)
      .map(({ command }) => command)
  await using fence = redisFence(client)
  for (let token = 1; token <= 3; token += 1) await fence.set(holder('trips', token), 'trips', 'x')
  expect(await sent()).toEqual(['eval', 'evalsha', 'evalsha'])
  await server.call('SCRIPT', 'FLUSH')
  await fence.set(holder('trips', 4), 'trips', 'x')
  expect((await sent()).slice(3)).toEqual(['evalsha', 'eval'])
})

test('tokens are compared to the last digit, above the integers of Lua', async () => {
  await using fence = redisFence(client)
  const high = 2n ** 62n
  await fence.set(holder('digits', high + 1n), 'digits', 'kept')
  await expect(fence.set(holder('digits', high), 'digits', 'lost')).rejects.toEqual(stale(high, high + 1n))
  await fence.touch(holder('digits', 9), 'nine')
  await fence.touch(holder('digits', 10), 'nine')
  await expect(fence.touch(holder('digits', 9), 'nine')).rejects.toEqual(stale(9n, 10n))
})

describe('a script', () => {
  test('gets its own keys and arguments, and its answer is returned unchanged', async () => {
    await using fence = redisFence(client)
    const run = (script: string, ...args: string[]): Promise<unknown> =>
      fence.eval(holder('script', 5), { script, keys: ['{s}1', '{s}2'], args })
    expect(await run('return {#KEYS, KEYS[2], #ARGV, ARGV[1]}', 'one')).toEqual([2, '{s}2', 1, 'one'])
    expect(await run('return redis.status_reply("FINE")')).toBe('FINE')
    expect(await run('local x = 1')).toBeFalsy()
    expect(await run('return {1, {2, false, 3}}')).toEqual([1, [2, null, 3]])
  })

  test('that fails rejects with the text of Redis, and the connection stays usable', async () => {
    await using fence = redisFence(client)
    const run = (script: string): Promise<unknown> => fence.eval(holder('script', 5), { script, keys: ['bad'] })
    await client.rpush('bad', 'a list')
    for (const [script, says] of [
      ["return redis.call('get', KEYS[1])", /WRONGTYPE/],
      ['return no_such_thing.at_all', /no_such_thing/],
      ['this is no Lua', /compiling/],
      ["return redis.error_reply('MINE own')", /MINE own/],
    ] as const) {
      expect(await failureOf(run(script))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(says),
      })
    }
    expect(await run('return 1')).toBe(1)
  })
})

test('marks of other fences are kept too, and can be listed, advanced and pruned', async () => {
  await using fence = redisFence(client, { prefix: 'own*' })
  await fence.marks.raise('api', { epoch: 0, token: 5n })
  await expect(fence.marks.raise('api', { epoch: 0, token: 4n })).rejects.toEqual(stale(4n, 5n))
  await fence.touch(holder('api', 900), '{orders}:1')
  expect(await fence.marks.list('a')).toEqual([
    { resource: 'api', epoch: 0, token: 5n, raisedAt: expect.any(Number) },
    { resource: 'api', part: 'orders', epoch: 0, token: 900n, raisedAt: expect.any(Number) },
  ])
  expect(await fence.marks.advance('api')).toBe(1)
  expect(await fence.marks.advance('nobody')).toBeUndefined()
  await expect(fence.touch(holder('api', 901), '{orders}:1')).rejects.toEqual(stale(901n, 0n))
  await using next = redisFence(client, { prefix: 'own*', epoch: 1 })
  await next.touch(holder('api', 3), '{orders}:1')
  expect(await next.marks.prune(3_600_000)).toBe(0)
  expect(await next.marks.prune(-1 as never).catch(error => error.code)).toBe('INVALID_ARGUMENT')
  await until('the clock has moved', async () => (await next.marks.prune(0)) > 0)
})

test('epochs that are begun at the same time differ', async () => {
  await using fence = redisFence(client)
  await fence.touch(holder('at once', 5), '{at once}')
  const epochs = await Promise.all(Array.from({ length: 10 }, () => fence.marks.advance('at once')))
  expect(epochs.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 10 }, (_, index) => index + 1))
})

test('all marks of a resource begin the same epoch, also where they were not in the same one', async () => {
  await using fence = redisFence(client, { prefix: 'uneven' })
  await using next = redisFence(client, { prefix: 'uneven', epoch: 1 })
  await fence.touch(holder('api', 900), '{behind}:1')
  await next.touch(holder('api', 3), '{ahead}:1')
  expect(await fence.marks.advance('api')).toBe(2)
  expect((await fence.marks.list('api')).map(({ part, epoch, token }) => [part, epoch, token])).toEqual([
    ['ahead', 2, 0n],
    ['behind', 2, 0n],
  ])
  await expect(next.touch(holder('api', 4), '{behind}:1')).rejects.toEqual(stale(4n, 0n))
})

test('marks survive a restart of a server that keeps its data', async () => {
  await using own = await startRedis({ appendonly: 'always' })
  const ownClient = new Redis(own.port, { lazyConnect: true })
  await using fence = redisFence(ownClient)
  await fence.set(holder('restarted', 7), 'restarted', 'kept')
  await own.kill()
  expect(await failureOf(fence.touch(holder('restarted', 7), 'restarted'))).toMatchObject({ retryable: true })
  await own.start()
  await expect(fence.set(holder('restarted', 6), 'restarted', 'lost')).rejects.toEqual(stale(6n, 7n))
  expect(await own.call('GET', 'restarted')).toBe('kept')
})

test('an abort rejects at once, with its reason', async () => {
  await using own = await startRedis()
  const ownClient = new Redis(own.port, { lazyConnect: true })
  await using fence = redisFence(ownClient)
  await fence.touch(holder('a', 1), 'a')
  await own.pause()
  const abort = new AbortController()
  const touching = fence.touch(holder('a', 2), 'a', { signal: abort.signal })
  abort.abort(new Error('enough'))
  expect(await failureOf(touching)).toBe(abort.signal.reason)
  own.resume()
})

test('invalid arguments are refused', async () => {
  await using fence = redisFence(client)
  const a = holder('a', 1)
  for (const [what, use] of [
    ['keys of two slots', () => fence.eval(a, { script: 'return 1', keys: ['one', 'two'] })],
    ['no key', () => fence.eval(a, { script: 'return 1', keys: [] })],
    ['a brace that closes nothing', () => fence.touch(a, 'a}b')],
    ['a number', () => fence.set(a, 'a', 5 as never)],
    ['a ttl of 0', () => fence.set(a, 'a', 'b', { ttl: 0 })],
    ['an unknown option', () => fence.set(a, 'a', 'b', { px: 5 } as never)],
    ['a shebang', () => fence.eval(a, { script: '#!lua\nreturn 1', keys: ['a'] })],
    ['no token', () => fence.touch({ name: 'a' } as never, 'a')],
  ] as const)
    expect(await failureOf(use()), what).toMatchObject({ code: 'INVALID_ARGUMENT' })
  for (const make of [() => redisFence({} as never), () => redisFence(client, { prefix: '' })])
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  await client.set('holdfast:mark:foreign', 'what?')
  expect(await failureOf(fence.marks.raise('foreign', { epoch: 0, token: 1n }))).toMatchObject({
    code: 'FORMAT_MISMATCH',
    message:
      'the key holdfast:mark:foreign holds no marks, or those of another version: use the same version of Holdfast everywhere, or give another prefix',
  })
})
