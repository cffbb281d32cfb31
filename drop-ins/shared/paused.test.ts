/** A process that is paused between the grant and the moment at which its lock is handed over. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { subscribe } from '../../src/index.ts'
import { Mutex } from '../redis-semaphore/index.ts'
import { ExecutionError, Redlock } from '../redlock/index.ts'

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, server.host)
})
afterAll(async () => {
  await client.quit()
  await server.stop()
})

/** Blocks the event loop at each grant, until the returned function is called. */
function pauseAtGrant(): () => void {
  const zero = new Int32Array(new SharedArrayBuffer(4))
  const stop = subscribe('lease_acquired', () => void Atomics.wait(zero, 0, 0, 1_200))
  onTestFinished(stop)
  return stop
}

test('holdfast-redis-semaphore sees and reports the loss', async () => {
  const reported: Error[] = []
  const mutex = new Mutex(client, randomUUID(), { lockTimeout: 1_000, onLockLost: error => reported.push(error) })
  const stopPauses = pauseAtGrant()
  await mutex.acquire()
  stopPauses()
  expect(mutex.isAcquired).toBe(false)
  expect(reported).toHaveLength(1)
  await mutex.acquire()
  expect(mutex.isAcquired).toBe(true)
  await mutex.release()
})

test('holdfast-redlock: the signal of using has aborted when the routine begins', async () => {
  pauseAtGrant()
  const redlock = new Redlock([client])
  let seen: readonly [isAborted: boolean, error: Error | undefined] | undefined
  const routine = redlock.using([randomUUID()], 1_000, { automaticExtensionThreshold: 500 }, async signal => {
    seen = [signal.aborted, signal.error]
  })
  await expect(routine).rejects.toBeInstanceOf(ExecutionError)
  expect(seen).toEqual([true, expect.any(ExecutionError)])
})
