import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { startClock } from '../../../../lab/servers/clock.ts'
import type { RedisServer } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { nodesOf } from '../../../../test/support.ts'
import { createLocks } from '../../../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal } from '../../redis/test/support.ts'
import { CAUTIOUS, heard, MAX_TTL, type Nodes, startNodes, TRUSTED } from './support.ts'

/** What a message says of a quarantine that has just begun. */
const QUARANTINED = /localhost:\d+: it may have forgotten leases, and votes in [1-7] s/

/** A majority grants; one of it restarts without its data; another client reaches that one and those that did not grant. */
async function restartCase(nodes: Nodes, options: object): Promise<{ granted: bigint; next: Promise<bigint> }> {
  const [a, b, c, d, e] = nodes.servers as [RedisServer, RedisServer, RedisServer, RedisServer, RedisServer]
  const [pa, pb, , pd, pe] = nodes.proxies
  for (const proxy of [pa, pb, pd, pe]) await proxy?.refuse()
  const holder = nodes.store(options, [a, b, c, pd, pe] as RedisServer[])
  const rival = nodes.store(options, [pa, pb, c, d, e] as RedisServer[])
  const granted = await hold(holder, claimOf('a', { ttl: MAX_TTL }))
  await c.restart()
  return { granted, next: hold(rival, claimOf('a', { ttl: MAX_TTL })) }
}

describe.concurrent('a majority holds, one of its nodes restarts without data, and another claim asks it and the rest', () => {
  test('it is refused, and told when to ask again', async () => {
    await using nodes = await startNodes(5)
    await nodes.age()
    const { next } = await restartCase(nodes, CAUTIOUS)
    const error = await failureOf(next)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(error.message).toMatch(/^no majority of the 5 nodes is available: /)
    expect(error.message).toMatch(QUARANTINED)
  })

  test('if restarted nodes were trusted it would be granted: two hold, and only the token distinguishes them', async () => {
    await using nodes = await startNodes(5)
    const { granted, next } = await restartCase(nodes, TRUSTED)
    expect(await next).toBeGreaterThan(granted)
  })
})

test('F12: quarantined fresh nodes, and an even number of them, cause one warning each', async () => {
  await using nodes = await startNodes(4)
  const cautious = { ...CAUTIOUS, maxTtl: 20_000 } // so that a busy machine has time for both tries
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const locks = createLocks(nodes.store(cautious), { ttl: 15_000 })
  createLocks(nodes.store(cautious))
  for (const name of ['a', 'b'])
    expect(await failureOf(locks.tryAcquire(name))).toMatchObject({ retryAfter: expect.any(Number) })
  expect(warnings.mock.calls.map(([message]) => message)).toEqual([
    'redlock has 4 servers, and tolerates no more failures than with 3: use an odd number',
    expect.stringMatching(
      /^redlock of 4 grants no lease for another (1\d|20) s: a majority of the servers was started, /,
    ),
  ])
  warnings.mockRestore()
  await locks.close()
})

test.concurrent('a new set of nodes grants nothing for maxTtl, and waiters are served after it', async () => {
  await using nodes = await startNodes(3)
  const { names } = nodes
  using quarantined = heard('node_quarantined', event => names.includes(event.node))
  using restored = heard('node_restored', event => names.includes(event.node))
  const locks = createLocks(nodes.store(CAUTIOUS), { ttl: 1_000 })
  await until('all are known', async () => (await nodesOf(locks.store)).every(node => node.remaining))
  const states = (await nodesOf(locks.store)) ?? []
  expect(states.map(({ name }) => name)).toEqual(names)
  expect((await locks.inspect('fresh')).nodes).toMatchObject(names.map(name => ({ name, state: 'quarantined' })))
  for (const { state, remaining, reason } of states) {
    expect(state).toBe('quarantined')
    expect(remaining).toBeGreaterThan(0)
    expect(remaining).toBeLessThanOrEqual(MAX_TTL)
    expect(reason).toMatch(/^it may have forgotten leases, and votes in [12] s$/)
  }
  const refused = (await failureOf(locks.tryAcquire('fresh'))) as Error & {
    retryAfter?: number
    cause?: AggregateError
  }
  expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(refused.message).toMatch(QUARANTINED)
  expect(refused.retryAfter).toBeGreaterThan(0)
  expect(refused.retryAfter).toBeLessThanOrEqual(MAX_TTL)
  for (const { message } of refused.cause?.errors ?? []) expect(message).toMatch(QUARANTINED)
  await expect(locks.acquire('fresh', { wait: 100 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  using acquired = heard('lease_acquired', event => event.lease.name === 'fresh')
  const lease = await locks.acquire('fresh', { wait: 20_000 })
  // It asked again when it was told to.
  expect(acquired[0]?.requests).toBeLessThan(5)
  await until('all serve', async () => (await nodesOf(locks.store)).every(node => node.state === 'serving'))
  expect(quarantined.map(({ node }) => node).sort()).toEqual([...names].sort())
  for (const { remaining } of quarantined) expect(remaining).toBeLessThanOrEqual(MAX_TTL)
  expect(restored.map(({ node }) => node).sort()).toEqual([...names].sort())
  await lease.release()
  await locks.close()
})

test.concurrent.each(['FLUSHALL', 'a restart'])('%s makes a node wait; it renews and releases meanwhile', async how => {
  // So that it is not by their start alone.
  using clock = startClock()
  await using nodes = await startNodes(3, () => ({ clock }))
  clock.jumpWall(3_600_000)
  await nodes.age()
  // Time for all that follows.
  const ttl = 6_000
  const store = await nodes.connected({ maxTtl: ttl, nodeTimeout: 500 })
  const claim = claimOf('a', { ttl })
  const token = await hold(store, claim)
  const [, second, third] = nodes.servers as [RedisServer, RedisServer, RedisServer]
  await (how === 'FLUSHALL' ? third.call('FLUSHALL') : third.restart())
  const held = { ...claim, token }
  await until('it is noticed', async () => {
    await store.renew(held, signal)
    return (await nodesOf(store))[2]?.state === 'quarantined'
  })
  await until('its vote is set again', async () => {
    await store.renew(held, signal)
    return (await nodes.holders('a'))[2] === claim.id
  })
  expect((await nodes.kept('a'))[2]).toEqual({ state: 'held', token, id: claim.id })
  // It counts for nobody: one more that is missing is one too many.
  await second.pause()
  for (const question of [store.renew(held, signal), acquire(store, claimOf('b', { ttl }))]) {
    const error = await failureOf(question)
    expect(error.code).toBe('STORE_UNAVAILABLE')
    expect(error.message).toMatch(QUARANTINED)
  }
  second.resume()
  await until('they agree again', () => store.renew(held, signal).catch(() => undefined))
  expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held', token }])
  await until('it is released', () => store.release(held, signal).catch(() => undefined))
  await until('it is free', async () => (await nodes.holders('a'))[2] === undefined)
  await until('it serves', async () => (await nodesOf(store))[2]?.state === 'serving')
  expect(await hold(store, claimOf('a', { ttl }))).toBeGreaterThan(token)
})

test.concurrent('a restart with an append-only file keeps votes and tokens, and makes a node wait all the same', async () => {
  await using nodes = await startNodes(3, () => ({ appendonly: 'always' }))
  await nodes.age()
  // Time for all that follows.
  const ttl = 5_000
  const store = await nodes.connected({ ...CAUTIOUS, maxTtl: ttl })
  const claim = claimOf('a', { ttl })
  const token = await hold(store, claim)
  await until('all voted', async () => (await nodes.holders('a')).every(id => id === claim.id))
  for (const server of nodes.servers) await server.restart()
  expect(await nodes.kept('a')).toEqual(nodes.servers.map(() => ({ state: 'held', token, id: claim.id })))
  const refused = await until('they answer', async () => {
    const error = await failureOf(acquire(store, claimOf('b', { ttl })))
    return QUARANTINED.test(error.message) && error
  })
  expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held', token }])
  const locks = createLocks(store, { ttl })
  const lease = await locks.acquire('a', { wait: 20_000 })
  expect(lease.token).toBeGreaterThan(token)
  await lease.release()
  await locks.close()
})

test.concurrent('trusted nodes serve at once after a restart with an append-only file, and know the holder', async () => {
  await using nodes = await startNodes(3, () => ({ appendonly: 'always' }))
  const locks = createLocks(await nodes.connected(), { ttl: 5_000 })
  const lease = await locks.acquire('a')
  await until('all voted', async () => (await nodes.holders('a')).every(id => id !== undefined))
  for (const server of nodes.servers) await server.restart()
  await until('they answer', () => lease.extend().catch(() => 0))
  expect(await locks.tryAcquire('a')).toBeUndefined()
  await lease.release()
  await locks.close()
})

describe.concurrent('a lease that is renewed', () => {
  test('outlives the restart of every node, one after the other, without data', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(), { ttl: 3_000 })
    const rival = createLocks(await nodes.connected())
    const lease = await locks.acquire('a')
    for (const server of nodes.servers) {
      await server.restart()
      await until('it is held by all', async () => {
        const kept = await nodes.kept('a')
        return kept.every(vote => vote?.state === 'held' && vote.token === lease.token)
      })
      expect(await rival.tryAcquire('a')).toBeUndefined()
      lease.assertHeld()
    }
    await lease.release()
    await (await rival.acquire('a')).release()
    await locks.close()
    await rival.close()
  })

  test('P4: is restored when a majority has lost it and no other claim holds', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected())
    const lease = await locks.acquire('a')
    await until('all voted', async () => (await nodes.holders('a')).every(id => id !== undefined))
    for (const index of [0, 2, 4]) await nodes.servers[index]?.call('FLUSHALL')
    // Those that forgot it answer first.
    for (const index of [1, 3]) nodes.proxies[index]?.down.delay(50)
    expect(await lease.extend()).toBeGreaterThan(0)
    await until('all have it', async () => (await nodes.kept('a')).every(kept => kept?.token === lease.token))
    await lease.release()
    await locks.close()
  })

  test('is certainly lost when another claim holds by nodes that lost it, and its remains are deleted', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected())
    const lease = await locks.acquire('a', { heartbeat: false })
    await until('all voted', async () => (await nodes.holders('a')).every(id => id !== undefined))
    for (const index of [0, 2, 4]) await nodes.servers[index]?.call('FLUSHALL')
    const store = nodes.store()
    const claim = claimOf('a')
    const token = await hold(store, claim)
    expect(token).toBeGreaterThan(lease.token)
    await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await until('only the other is left', async () => {
      const ids = await nodes.holders('a')
      return ids.every(id => id === undefined || id === claim.id)
    })
    expect(await store.renew({ ...claim, token }, signal)).toMatchObject({ token })
    await locks.close()
  })

  test('is certainly lost when all nodes lost it, because it may have expired', async () => {
    await using nodes = await startNodes(3)
    const locks = createLocks(await nodes.connected())
    const lease = await locks.acquire('a')
    for (const server of nodes.servers) await server.call('FLUSHALL')
    await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(lease.signal.aborted).toBe(true)
    await sleep(50)
    expect(await nodes.holders('a')).toEqual([undefined, undefined, undefined])
    await locks.close()
  })

  test('is lost if another claim got a higher token, although one node does not know that', async () => {
    await using nodes = await startNodes(3)
    const store = nodes.store(TRUSTED, nodes.servers)
    const claim = claimOf('a')
    const token = await hold(store, claim)
    await until('all voted', async () => (await nodes.holders('a')).every(id => id === claim.id))
    await nodes.proxies[0]?.refuse()
    const broken = (await nodes.store().break('a', { by: 'operator' }, signal)) ?? 0n
    expect(broken).toBeGreaterThan(token)
    expect(await nodes.holders('a')).toEqual([claim.id, undefined, undefined])
    expect(await store.renew({ ...claim, token }, signal)).toBeUndefined()
    await until('nothing is left', async () => (await nodes.holders('a')).every(id => id === undefined))
  })

  test('is not restored by a renewal that arrives after its release', async () => {
    await using nodes = await startNodes(3)
    const store = await nodes.connected()
    const claim = claimOf('a')
    const token = await hold(store, claim)
    await store.release({ ...claim, token }, signal)
    expect(await store.renew({ ...claim, token }, signal)).toBeUndefined()
    expect(await nodes.holders('a')).toEqual([undefined, undefined, undefined])
    for (const kept of await nodes.kept('a')) expect(kept?.token).toBeGreaterThan(token)
  })
})
