import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { createSentinel } from 'redis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SentinelSet, startSentinel } from '../../../../lab/servers/sentinel.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

let set: SentinelSet

beforeEach(async () => {
  set = await startSentinel()
})
afterEach(() => set.stop())

/** Waits until the replica has all that the master has. */
async function inStep(): Promise<void> {
  await (await set.master()).replicatedTo(await set.replica())
}

const stores: Record<string, () => Store> = {
  ioredis() {
    return storeOf(new Redis({ ...sentinelOptions(), lazyConnect: true }))
  },
  'node-redis'() {
    const sentinelRootNodes = set.sentinels.map(({ port }) => ({ host, port }))
    return storeOf(createSentinel({ name: SentinelSet.group, sentinelRootNodes }))
  },
}

/** The other clients that know Sentinel. */
const others: Record<string, () => Store> = {
  ioredis5: () => storeOf(new Redis5({ ...sentinelOptions(), lazyConnect: true })),
  iovalkey: () => storeOf(new Valkey({ ...sentinelOptions(), lazyConnect: true })),
}

function sentinelOptions(): { sentinels: { host: string; port: number }[]; name: string } {
  return { sentinels: set.sentinels.map(({ port }) => ({ host, port })), name: SentinelSet.group }
}

describe.each(Object.entries(stores))('%s', (_, open) => {
  test('keeps a lease across a failover that lost nothing, and its holder renews it', { timeout: 60_000 }, async () => {
    const store = open()
    const locks = createLocks(store, { ttl: 20_000 })
    const lease = await locks.acquire('a')
    await inStep()
    await set.failover()
    await until('it is renewed', () => lease.extend().catch(() => undefined), { limit: 15_000 })
    expect(lease.signal.aborted).toBe(false)
    expect((await look(store, { name: 'a' }))[0]?.token).toBe(lease.token)
    await lease.release()
    const next = await locks.acquire('a')
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
    await locks.close()
  })

  test('notifies the holder whose lease a failover lost, and the next token is higher', {
    timeout: 60_000,
  }, async () => {
    const store = open()
    const warm = claimOf('warm')
    await hold(store, warm)
    const claim = claimOf('a', { ttl: 20_000 })
    let token = 0n
    await set.staleFailover(async () => {
      token = await hold(store, claim)
    })
    const renewal = await until(
      'the new master answers',
      () => store.renew(claim, signal).then(String, () => undefined),
      { limit: 15_000 },
    )
    expect(renewal).toBe('undefined')
    expect(await hold(store, claimOf('a'))).toBeGreaterThan(token)
    await store[Symbol.asyncDispose]()
  })

  test('wakes a waiter after a failover', { timeout: 60_000 }, async () => {
    const [one, two] = [open(), open()]
    const [holder, waiter] = [createLocks(one, { ttl: 30_000 }), createLocks(two, { ttl: 30_000 })]
    const lease = await holder.acquire('a')
    const waiting = waiter.acquire('a')
    await until('it waits', async () => (await look(one, { name: 'a' })).length === 2)
    await inStep()
    await set.failover()
    await until('the holder is served', () => lease.extend().catch(() => undefined), { limit: 15_000 })
    await until('it waits again', async () => (await look(one, { name: 'a' })).length === 2, { limit: 15_000 })
    await lease.release()
    const next = await waiting
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
    await holder.close()
    await waiter.close()
  })
})

test('serves while a sentinel is dead, and finds the master past it', async () => {
  await set.sentinels[0]?.kill()
  for (const open of Object.values(stores)) {
    await using store = open()
    const claim = claimOf('a')
    await hold(store, claim)
    await store.watch?.(claim, () => {}, signal)
    expect(await store.release(claim, signal)).toBe('released')
  }
})

test('a first sentinel that hangs keeps no client from the new master', { timeout: 90_000 }, async () => {
  const all = Object.entries({ ...stores, ...others })
  const replica = await set.replica()
  const old = all.map(([name, open]) => ({ name, store: open() }))
  for (const { name, store } of old) await hold(store, claimOf(name))
  await set.sentinels[0]?.pause()
  await set.nodes.find(node => node !== replica)?.pause()
  await until('a failover', async () => (await replica.info('replication')).role === 'master')
  const fresh = all.map(([name, open]) => ({ name, store: open() }))
  await Promise.all(
    [...old, ...fresh].map(async ({ name, store }) => {
      const limit = 20_000
      await until(`${name} is served`, () => hold(store, claimOf(randomUUID())), { limit, every: 100 })
      const waits = claimOf(name)
      await until(`${name} is notified`, () => store.watch?.(waits, () => {}, signal).then(() => true), { limit })
      await store[Symbol.asyncDispose]()
    }),
  )
})

test('a request that is refused during a failover can be retried', { timeout: 60_000 }, async () => {
  const store = stores.ioredis?.() as Store
  await hold(store, claimOf('a'))
  const master = await set.master()
  // Like a master that learns late that it was replaced.
  await master.call('REPLICAOF', host, (await set.replica()).port)
  const error = await failureOf(hold(store, claimOf('b')))
  expect(error).toMatchObject({ retryable: true })
  expect(error.code).toMatch(/STORE_UNAVAILABLE|OUTCOME_UNKNOWN/)
  await store[Symbol.asyncDispose]()
})
