import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { follow, stage } from '../test/scripted-store.ts'
import { StoreLocks } from './locks.ts'

test('a name that is asked for while it is held here says that this process itself holds it', async () => {
  const { locks, clock } = stage({ ttl: 5_000 })
  const outer = await locks.acquire('a')
  const inner = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(1_000)
  expect(inner.error).toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    retryable: true,
    lease: 'a',
    holder: { owner: outer.owner, token: outer.token },
    message: `"a" was not had within 1000 ms: it is held by this process itself (${outer.owner}), and not re-entrant, for another 4000 ms unless renewed`,
  })
})

test('another process of the same owner is not taken for this one', async () => {
  const { locks, server, clock } = stage({ owner: 'billing' })
  const twin = new StoreLocks(server, { owner: 'billing' }, { clock, random: () => 0.5 })
  await twin.acquire('a', { ttl: 5_000 })
  await locks.acquire('b')
  await expect(locks.acquire('a', { wait: 0 })).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    message: '"a" is held by billing, for another 5000 ms unless renewed',
  })
})

test('two Locks in one process exclude each other, and by default say which process they are', async () => {
  const { locks, server, clock } = stage()
  const second = new StoreLocks(server, {}, { clock, random: () => 0.5 })
  const lease = await locks.acquire('a')
  expect(lease.owner).toMatch(new RegExp(`^${hostname()}:${process.pid}:[0-9a-f]{6}$`))
  await expect(second.acquire('a', { wait: 0 })).rejects.toThrow(`"a" is held by ${lease.owner}, for another`)
  expect(await second.tryAcquire('a')).toBeUndefined()
  await lease.release()
  expect((await second.tryAcquire('a'))?.owner).not.toBe(lease.owner)
})
