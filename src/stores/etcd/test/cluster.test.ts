import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type EtcdCluster, type EtcdServer, startEtcdCluster } from '../../../../lab/servers/etcd.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../create-locks.ts'
import { claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

let cluster: EtcdCluster
const stores: Store[] = []

beforeAll(async () => {
  cluster = await startEtcdCluster()
})
afterAll(() => cluster.stop())

afterEach(async () => {
  await Promise.all(stores.splice(0).map(store => store[Symbol.asyncDispose]()))
  cluster.heal()
  for (const member of cluster.members) {
    if (!member.isRunning) await member.start()
    else member.resume()
  }
  // Every member serves what needs a majority.
  for (const member of cluster.members)
    await until('it serves', async () => (await member.call('kv/range', { key: 'AA==' })) !== undefined)
})

/** A store that asks these first, in this order. */
function opened(members: readonly EtcdServer[] = cluster.members): Store {
  const store = storeOf(members)
  stores.push(store)
  return store
}

function others(member: EtcdServer): EtcdServer[] {
  return cluster.members.filter(other => other !== member)
}

describe.each(['killed', 'stopped', 'cut off'] as const)('when the leader is %s', fault => {
  async function hurt(member: EtcdServer): Promise<void> {
    if (fault === 'killed') await member.kill()
    else if (fault === 'stopped') await member.pause()
    else await cluster.cut(member)
  }

  test('a lease is kept through another member, with its token, and others do not get it', async () => {
    const leader = await cluster.leader()
    const members = [leader, ...others(leader)]
    const locks = createLocks(opened(members), { ttl: 8_000 })
    const rival = opened(others(leader))
    const lease = await locks.acquire(`kept ${fault}`)
    let lost = false
    lease.signal.addEventListener('abort', () => {
      lost = true
    })
    await hurt(leader)
    const end = performance.now() + 10_000
    while (performance.now() < end) {
      const answer = await rival.acquire(claimOf(lease.name), signal).catch(() => undefined)
      expect(answer?.held).not.toBe(true)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    lease.assertHeld()
    expect(lost).toBe(false)
    const {
      holders: [holder],
    } = await locks.inspect(lease.name)
    expect(holder?.token).toBe(lease.token)
    await lease.release()
    await locks.close()
  })

  test('names are acquired and released through the others, within a ttl, and tokens rise', async () => {
    const leader = await cluster.leader()
    const locks = createLocks(opened([leader, ...others(leader)]), { ttl: 10_000 })
    const tokens: bigint[] = []
    const cycle = async (): Promise<void> => {
      await using lease = await locks.acquire(`cycle ${fault}`)
      tokens.push(lease.token)
    }
    await cycle()
    await hurt(leader)
    await cycle()
    await cycle()
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)))
    await locks.close()
  })

  test('a waiter whose watch used that member is woken by a release through another one', async () => {
    const leader = await cluster.leader()
    const holder = opened(others(leader))
    const claim = claimOf(`wait ${fault}`)
    await hold(holder, claim)
    const locks = createLocks(opened([leader, ...others(leader)]), { ttl: 9_000 })
    const waiting = locks.acquire(claim.name)
    await until('it waits', async () => (await look(holder, { name: claim.name })).length === 2)
    await hurt(leader)
    await until('it is released', () => holder.release(claim, signal))
    await (await waiting).release()
    await locks.close()
  })

  test('the name of a holder that died is freed, and tokens rise', async () => {
    const leader = await cluster.leader()
    const store = opened(others(leader))
    const claim = claimOf(`died ${fault}`, { ttl: 2_000 })
    const token = await hold(store, claim)
    await hurt(leader)
    const next = claimOf(claim.name)
    const take = async (): Promise<bigint | false> => {
      const answer = await store.acquire(next, signal)
      return answer.held && answer.token
    }
    expect(await until('it is passed on', take, { limit: 20_000 })).toBeGreaterThan(token)
  })
})

test('holders that are cut off with their member are notified before another can hold', async () => {
  const leader = await cluster.leader()
  const locks = createLocks(opened([leader]), { ttl: 3_000 })
  const rival = opened(others(leader))
  const lease = await locks.acquire('minority')
  let toldAt = Number.POSITIVE_INFINITY
  lease.signal.addEventListener('abort', () => {
    toldAt = performance.now()
  })
  await cluster.cut(leader)
  const next = claimOf('minority')
  await until('it is passed on', async () => (await rival.acquire(next, signal).catch(() => undefined))?.held)
  expect(toldAt).toBeLessThan(performance.now())
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  const failed = await failureOf(locks.acquire('another', { wait: 0 }))
  expect(failed.code).toMatch(/^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
  await locks.close()
})

test('renewals do not count if they are answered by a leader that was replaced while it was paused', async () => {
  const leader = await cluster.leader()
  const [old, store] = [opened([leader]), opened(others(leader))]
  const claim = claimOf('replaced', { ttl: 3_000 })
  await hold(old, claim)
  expect(await old.renew(claim, signal)).toBeDefined()
  await leader.pause()
  await until('another leads', async () => (await cluster.leader(others(leader))) !== leader)
  const renewal = old.renew(claim, signal).catch((error: { code: string }) => error.code)
  await store.break(claim.name, { by: 'test' }, signal)
  const next = claimOf(claim.name)
  await hold(store, next)
  leader.resume()
  const answer = await renewal
  expect([undefined, 'OUTCOME_UNKNOWN', 'STORE_UNAVAILABLE']).toContain(answer)
  await until('it learns of the loss', async () => (await old.renew(claim, signal)) === undefined)
  expect(await store.renew(next, signal)).toBeDefined()
})

test('without a majority nothing is granted, and each request fails within its limit', async () => {
  const leader = await cluster.leader()
  const [store, locks] = [opened(), createLocks(opened(), { ttl: 1_500 })]
  await hold(store, claimOf('warm'))
  for (const member of others(leader)) await member.kill()
  const started = performance.now()
  const failed = await failureOf(locks.tryAcquire('no majority'))
  expect(failed.code).toBe('STORE_UNAVAILABLE')
  expect(performance.now() - started).toBeLessThan(3_000)
  await locks.close()
})

test('a client with three endpoints uses the one that is left', async () => {
  const [first, second, third] = cluster.members as [EtcdServer, EtcdServer, EtcdServer]
  const store = opened([first, second, third])
  await hold(store, claimOf('first'))
  for (const [victim, next] of [
    [first, claimOf('second')],
    [second, claimOf('third')],
  ] as const) {
    await victim.kill()
    // What a replaced leader did is unknown. The core retries, too.
    await until('another serves', () => hold(store, next).catch(() => undefined))
    await victim.start()
  }
  expect((await look(store, { name: 'third' })).length).toBe(1)
})
