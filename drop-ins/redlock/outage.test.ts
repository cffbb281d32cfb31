import { Redis } from 'ioredis'
import { expect, test, vi } from 'vitest'
import { reservePort } from '../../lab/servers/port.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { LeaseError } from '../../src/index.ts'
import { ExecutionError, Redlock } from './index.ts'

test('waiting for a server that is down ends with the window, and has the reason', async () => {
  const port = await reservePort()
  const down = new Redis(port.number, '127.0.0.1', { retryStrategy: null }).on('error', () => {})
  await until('the client has ended', () => down.status === 'end')
  const unreachable = new Redlock([down], { retryCount: 2, retryDelay: 20 })
  const errors: Error[] = []
  unreachable.on('error', error => errors.push(error))
  const error: unknown = await unreachable.acquire(['a'], 1_000).catch(error => error)
  if (!(error instanceof ExecutionError)) throw error
  expect(LeaseError.is(error.cause, 'STORE_UNAVAILABLE')).toBe(true)
  expect(error.attempts).toHaveLength(3)
  expect(errors.length).toBeGreaterThan(0)
  const [stats] = await Promise.all(error.attempts)
  expect(stats?.votesAgainst.get(down)?.message).toBe('Connection is closed.')
  down.disconnect()
  await port.release()
})

test('waiting for a server that comes back lasts as long as its client retries, and then for the window', async () => {
  const failing = await startRedis()
  const retrying = new Redis(failing.port, failing.host).on('error', () => {})
  const patient = new Redlock([retrying])
  await (await patient.acquire(['a'], 20_000)).release()
  await failing.kill()
  await until('the client retries', () => retrying.status === 'reconnecting')
  const waiting = patient.acquire(['a'], 20_000, { retryCount: 0 })
  const both = patient.acquire(['b', 'c'], 20_000, { retryCount: -1 })
  await failing.start()
  await (await waiting).release()
  await (await both).release()
  await patient.quit()
  await failing.stop()
})

test('an extension is tried again until the window or the lock is over', async () => {
  const server = await startRedis()
  const redlock = new Redlock([new Redis(server.port, server.host)], { retryDelay: 20 })
  const lock = await redlock.acquire(['a'], 20_000)
  const errors: Error[] = []
  redlock.on('error', error => errors.push(error))
  const extend = vi.fn<typeof lock.lease.extend>(lock.lease.extend)
  Object.defineProperty(lock.lease, 'extend', { value: extend })
  const down = new LeaseError('STORE_UNAVAILABLE', 'down')

  extend.mockRejectedValueOnce(down).mockRejectedValueOnce(down)
  const extended = await redlock.extend(lock, 2_000, { retryCount: -1 })
  expect(extended.attempts).toHaveLength(3)
  expect(errors).toEqual([down, down])

  extend.mockRejectedValue(down)
  const outlasted = redlock.extend(extended, 2_000, { retryCount: 3 })
  await expect(outlasted).rejects.toMatchObject({ cause: down, attempts: expect.objectContaining({ length: 4 }) })
  const started = performance.now()
  await expect(redlock.extend(extended, 2_000, { retryCount: -1 })).rejects.toThrow(ExecutionError)
  expect(performance.now() - started).toBeLessThan(3_000)

  await redlock.quit()
  await server.stop()
})
