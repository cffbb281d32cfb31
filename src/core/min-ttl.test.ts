import { describe, expect, test } from 'vitest'
import { failureOf } from '../../test/support.ts'
import { holdfast } from '../cli/test/holdfast.ts'
import { connect, openStore } from '../connect.ts'
import { createLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { sqlite } from '../stores/sqlite/index.ts'

const refusal = { code: 'INVALID_ARGUMENT', retryable: false }

test('F9: a ttl below the shortest of the store is refused; the message has both, and the unit', async () => {
  await using locks = createLocks(sqlite('/never/opened.db'))
  const message = 'ttl is 10 ms; sqlite needs at least 200. Durations are milliseconds'
  for (const call of [locks.acquire, locks.tryAcquire] as const)
    expect(await failureOf(call.call(locks, 'a', { ttl: 10 }))).toMatchObject({ ...refusal, message })
  expect(await failureOf(locks.using('a', { ttl: 10 }, async () => {}))).toMatchObject({ ...refusal, message })
})

test('F9: such a ttl in the defaults is refused when the locks are made', async () => {
  const message = 'the default ttl of these locks is 10 ms; sqlite needs at least 200. Durations are milliseconds'
  expect(() => createLocks(sqlite('/never/opened.db'), { ttl: 10 })).toThrow(message)
  expect(await failureOf(connect('sqlite:/never/opened.db', { ttl: 10 }))).toMatchObject({ ...refusal, message })
})

test('F9: extend refuses it as well, and the lease continues', async () => {
  await using locks = createLocks(memory({ minTtl: 1_000 }))
  await using lease = await locks.acquire('a')
  const message = 'ttl is 500 ms; memory needs at least 1000. Durations are milliseconds'
  expect(await failureOf(lease.extend(500))).toMatchObject({ ...refusal, message })
  lease.assertHeld()
  expect(await lease.extend(1_000)).toBeGreaterThan(900)
})

test('F9: the option minTtl of the store allows less', async () => {
  const store = sqlite('/never/opened.db', { minTtl: 20 })
  expect(store.guarantees.minTtl).toBe(20)
  expect(sqlite('/never/opened.db').guarantees.minTtl).toBe(200)
  await createLocks(store, { ttl: 20 }).close()
  expect(() => sqlite('leases.db', { minTtl: 0 })).toThrow('minTtl must be a whole number of milliseconds')
})

describe('F9: minTtl in a URL', () => {
  test.each([
    'redis://localhost:1/0?minTtl=20',
    'redlock://localhost:1,localhost:2,localhost:3?minTtl=20',
    'postgres://localhost:1/db?minTtl=20',
    'etcd://localhost:1?minTtl=20',
    'zookeeper://localhost:1?minTtl=20',
  ])('is that of the store: %s', async url => {
    await using store = await openStore(url)
    expect(store.guarantees.minTtl).toBe(20)
  })

  test.each(['redis://localhost:1?minTtl=2s', 'zookeeper://localhost:1?minTtl=2s'])(
    'must be a number: %s',
    async url => {
      const message = expect.stringContaining('minTtl must be a whole number of milliseconds')
      expect(await failureOf(openStore(url))).toMatchObject({ ...refusal, message })
    },
  )
})

test('F9: --ttl below the shortest of the store is refused by the command line', async () => {
  const { code, err } = await holdfast(['run', 'a', '--ttl', '500ms', '--store', 'etcd://localhost:1', '--', 'true'])
  expect(err).toMatch(/ttl .*is 500 ms; etcd needs at least 1000/)
  expect(code).toBe(64)
})
