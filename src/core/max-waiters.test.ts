import { expect, test } from 'vitest'
import { follow, lost, stage } from '../../test/scripted-store.ts'
import { look } from '../../test/support.ts'
import type { LeaseEvents } from '../contract/lease-events.ts'
import { subscribe } from '../index.ts'

const refusal = { code: 'TOO_MANY_WAITERS', leaseName: 'a', waited: 0, retryable: true }

test('a call above maxWaiters is refused without a request, until a waiter is served or gives up', async () => {
  const { locks, other, clock, store } = stage({ maxWaiters: 2 })
  const held = await other.acquire('a')
  const controller = new AbortController()
  const first = follow(locks.acquire('a'))
  const second = follow(locks.using('a', { signal: controller.signal }, async () => {}))
  await clock.advance(10)
  const sent = store.calls.length
  await expect(locks.acquire('a')).rejects.toMatchObject(refusal)
  await expect(locks.acquire('a', { maxWaiters: 1 })).rejects.toThrow(
    'maxWaiters is 1, and as many calls already wait for "a": try later, or raise it',
  )
  expect(await locks.tryAcquire('a')).toBeUndefined()
  await expect(locks.acquire('a', { wait: 0 })).rejects.toMatchObject({ code: 'BUSY' })
  expect(store.calls.slice(sent)).toEqual(['acquire', 'acquire'])

  controller.abort()
  await clock.advance(10)
  expect(second.settled).toBe(true)
  const third = follow(locks.acquire('a'))
  await clock.advance(10)
  await expect(locks.acquire('a')).rejects.toMatchObject(refusal)
  await held.release()
  await clock.advance(10)
  await first.value?.release()
  await clock.advance(10)
  expect(third.value?.name).toBe('a')
  const unlimited = [1, 2, 3].map(() => follow(locks.acquire('a', { maxWaiters: Number.POSITIVE_INFINITY })))
  await clock.advance(10)
  expect(unlimited.map(({ settled }) => settled)).toEqual([false, false, false])
  await expect(locks.acquire('a')).rejects.toMatchObject(refusal)
  await locks.acquire('b')
})

test('of a burst those above maxWaiters are refused with the first answer, and leave no claim', async () => {
  const { locks, other, clock, server } = stage()
  await other.acquire('a')
  const errors: unknown[] = []
  using _ = {
    [Symbol.dispose]: subscribe('not_acquired', ({ error }: LeaseEvents['not_acquired']) => errors.push(error)),
  }
  const calls = Array.from({ length: 5 }, () => follow(locks.acquire('a', { maxWaiters: 2 })))
  await clock.advance(10)
  expect(calls.filter(({ error }) => error).map(({ error }) => error)).toMatchObject([refusal, refusal, refusal])
  expect(errors).toEqual(calls.filter(({ error }) => error).map(({ error }) => error))
  expect((await look(server, { name: 'a' })).map(({ state }) => state)).toEqual(['held', 'waiting', 'waiting'])
})

test('calls wait, and are limited, while the store does not answer', async () => {
  const { locks, clock, store } = stage({ ttl: 30_000, maxWaiters: 1 })
  store.ruleAll(lost)
  const first = follow(locks.acquire('a'))
  await clock.advance(6_000)
  expect(first.settled).toBe(false)
  await expect(locks.acquire('a')).rejects.toMatchObject(refusal)
})

test('free permits refuse no call, and permits, readers, writers and sets that wait are limited', async () => {
  const { locks, other, clock } = stage({ maxWaiters: 1 })
  const semaphore = locks.semaphore('a', { limit: 3 })
  const permits = await Promise.all([1, 2, 3].map(() => semaphore.acquire()))
  const waiting = follow(semaphore.acquire())
  await clock.advance(10)
  await expect(semaphore.acquire()).rejects.toMatchObject(refusal)
  await expect(locks.readWrite('a').reader.acquire()).rejects.toMatchObject(refusal)
  await expect(locks.all(['b', 'a']).acquire()).rejects.toMatchObject(refusal)
  await expect(semaphore.acquire({ permits: 2 })).rejects.toMatchObject(refusal)
  await Promise.all(permits.map(permit => permit.release()))
  await clock.advance(10)
  await waiting.value?.release()
  expect((await other.inspect('b')).holders).toEqual([])

  const { reader, writer } = locks.readWrite('a')
  await reader.acquire()
  const write = follow(writer.acquire())
  await clock.advance(10)
  await expect(reader.acquire()).rejects.toMatchObject(refusal)
  expect(write.settled).toBe(false)
})

test('candidates for leadership wait without a limit', async () => {
  const { locks, clock } = stage({ maxWaiters: 1 })
  await locks.acquire('a')
  const terms = [1, 2].map(() => follow(locks.election('a').run(async () => {})))
  await clock.advance(20_000)
  expect((await locks.inspect('a')).waiters).toHaveLength(2)
  expect(terms.map(({ settled }) => settled)).toEqual([false, false])
})

test.each([0, 1.5, -1, Number.NaN, '2'])('maxWaiters %s is refused', async maxWaiters => {
  const { locks } = stage()
  await expect(locks.acquire('a', { maxWaiters: maxWaiters as number })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('maxWaiters must be a whole number from 1, not '),
  })
})
