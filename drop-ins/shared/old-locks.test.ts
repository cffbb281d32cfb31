import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { startRedis } from '../../lab/servers/redis.ts'
import { createLocks } from '../../src/index.ts'
import { redis } from '../../src/stores/redis/index.ts'
import { known, locksOf } from './clients.ts'
import { OldLocks } from './old-locks.ts'

test('copies of earlier requests that arrive late do not shorten the key of the old library', async () => {
  await using server = await startRedis()
  const client = new Redis(server.port, server.host)
  const old = new OldLocks([client], 0)
  const { signal } = new AbortController()
  await old.acquire('a', 'mine', 3_000, signal)
  await old.extend('a', 'mine', 60_000, signal)
  await old.extend('a', 'mine', 3_000, signal)
  await old.acquire('a', 'mine', 3_000, signal)
  expect(await client.pttl('a')).toBeGreaterThan(30_000)
  await client.quit()
})

test('clients that the old libraries cannot use are refused', async () => {
  const { createClient } = await import('redis')
  const client = createClient()
  expect(() => locksOf([client], { alongside: true })).toThrow('needs clients of ioredis or iovalkey')
  expect(() => locksOf([client], { db: 3 })).toThrow('Select the database in the client')
  expect(known([client], { alongside: true })).toBeUndefined()
})

test.each([true, false])(
  'a name that is a key of Holdfast itself is refused, alongside or not (%s)',
  async alongside => {
    await using server = await startRedis()
    const client = new Redis(server.port, server.host)
    const [{ locks }, victims] = [locksOf([client], { alongside }), createLocks(redis(client))]
    await expect(locks.tryAcquire('holdfast:{:victim}')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('give another name or prefix'),
    })
    expect((await victims.inspect('victim')).holders[0]).toBeUndefined()
    await Promise.all([locks.close(), victims.close()])
    await client.quit()
  },
)
