import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { LeaseError } from '../../src/index.ts'
import { Mutex } from './index.ts'

test('waiting for a server that is down lasts for acquireTimeout, also if lockTimeout is shorter', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, server.host).on('error', () => {})
  const short = { lockTimeout: 500, acquireTimeout: 2_000 }
  const [patient, late] = [new Mutex(client, 'a', { ...short, acquireTimeout: 30_000 }), new Mutex(client, 'b', short)]
  await patient.acquire()
  await patient.release()
  await server.kill()
  await until('the client retries', () => client.status === 'reconnecting')
  const waiting = patient.acquire()
  await expect(late.acquire()).rejects.toSatisfy(error => LeaseError.is(error, 'STORE_UNAVAILABLE'))
  await server.start()
  await waiting
  await patient.release()
  await client.quit()
  await server.stop()
})
