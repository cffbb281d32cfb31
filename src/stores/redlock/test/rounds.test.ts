import { afterEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, failureOf, hold, look, nodesOf, signal } from '../../../../test/support.ts'
import { createLocks } from '../../../index.ts'
import { heard, type Nodes, spend, startNodes, TRUSTED } from './support.ts'

/** Microseconds, so far ahead that no clock decides. */
const base = BigInt(Date.now() + 3_600_000) * 1_000n
const ahead = (...steps: number[]): bigint[] => steps.map(step => base + BigInt(step))

afterEach(() => void vi.restoreAllMocks())

async function tokens(nodes: Nodes, name: string): Promise<(bigint | undefined)[]> {
  return (await nodes.kept(name)).map(kept => kept?.token)
}

describe('a token', () => {
  test('takes one round trip if a majority already has it, for new and used names', async () => {
    await using nodes = await startNodes(5)
    const store = await nodes.connected()
    using votes = heard('votes_counted', ({ name }) => name.startsWith('a'))
    for (let round = 0; round < 20; round += 1) {
      const claim = claimOf(`a ${round % 4}`)
      await hold(store, claim)
      await store.release(claim, signal)
    }
    expect([...votes]).toEqual(
      Array.from({ length: 20 }, (_, round) => ({ name: `a ${round % 4}`, outcome: 'won', rounds: 1 })),
    )
  })

  test('is written back to a majority when counters differ', async () => {
    await using nodes = await startNodes(3)
    const store = await nodes.connected()
    await spend(nodes, 'a', ahead(10, 30, 20))
    using votes = heard('votes_counted', ({ name }) => name.startsWith('a'))
    // All three answer before the first two are enough, so that it is the highest of all or of two.
    const claim = claimOf('a')
    const token = await hold(store, claim)
    expect([...votes]).toEqual([{ name: 'a', outcome: 'won', rounds: 2 }])
    expect([base + 21n, base + 31n]).toContain(token)
    const kept = await tokens(nodes, 'a')
    expect(kept.filter(each => each === token).length).toBeGreaterThanOrEqual(2)
    // Asking again, as when the answer was lost, may find a higher vote that the first answer did without; never a lower.
    let last = token
    for (const quiet of nodes.proxies) {
      quiet.down.hold()
      const again = await hold(store, claim)
      expect(again).toBeGreaterThanOrEqual(last)
      last = again
      quiet.down.pass()
    }
    expect(last).toBe(base + 31n)
    expect(await look(store, { name: 'a' })).toMatchObject([{ state: 'held', token: last }])
    await store.release({ ...claim, token: last }, signal)
    expect(await hold(store, claimOf('a'))).toBeGreaterThan(last)
  })

  test('is above every one before, whichever majority answers', async () => {
    await using nodes = await startNodes(3)
    const store = await nodes.connected()
    await spend(nodes, 'a', ahead(1, 50, 100))
    let last = 0n
    for (const absent of [2, 1, 0, 2, 0, 1]) {
      nodes.proxies[absent]?.down.hold()
      const claim = claimOf('a')
      const token = await hold(store, claim)
      expect(token).toBeGreaterThan(last)
      last = token
      await store.release({ ...claim, token }, signal)
      nodes.proxies[absent]?.down.pass()
      await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
    }
  })

  test.each([
    ['every node', [0, 1, 2]],
    ['a majority', [1, 2]],
  ])('is worth nothing if %s has granted somebody else since', async (_, forgetful) => {
    await using nodes = await startNodes(3)
    await spend(nodes, 'a', ahead(1, 2, 3))
    const store = await nodes.connected({ ...TRUSTED, nodeTimeout: 4_000 })
    // Its votes are granted, and the answers arrive only after these nodes have lost them.
    const claim = claimOf('a', { ttl: 20_000 })
    for (const { down } of nodes.proxies) down.hold()
    const first = acquire(store, claim)
    await until('it has the votes', async () => (await nodes.holders('a')).every(id => id === claim.id))
    for (const index of forgetful) await nodes.servers[index]?.call('DEL', 'holdfast:redlock:{:a}')
    await spend(
      nodes,
      'a',
      nodes.servers.map((_, index) => (forgetful.includes(index) ? base + 100n : undefined)),
    )
    const rival = nodes.store(TRUSTED, nodes.servers)
    const other = claimOf('a', { ttl: 20_000 })
    const token = await hold(rival, other)
    for (const { down } of nodes.proxies) down.pass()
    expect(await first).toMatchObject({ held: false })
    const [kept, ids] = [await tokens(nodes, 'a'), await nodes.holders('a')]
    for (const index of forgetful) expect([kept[index], ids[index]]).toEqual([token, other.id])
    expect(await rival.renew({ ...other, token }, signal)).toMatchObject({ token })
  })
})

describe('break', () => {
  test('returns a token above the old one and below the next, whatever the counters are', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected())
    await spend(nodes, 'a', ahead(5, 4, 3, 2, 1))
    const lease = await locks.acquire('a', { heartbeat: false })
    const token = (await locks.break('a', { by: 'operator' })) ?? 0n
    expect(token).toBeGreaterThan(lease.token)
    // It is answered by a majority, maybe before the others have heard of it.
    await until('no node has it', async () => (await nodes.holders('a')).every(id => id === undefined))
    const known = (await tokens(nodes, 'a')).filter(each => each !== undefined && each >= token)
    expect(known.length).toBeGreaterThanOrEqual(3)
    await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
    const next = await locks.acquire('a')
    expect(next.token).toBeGreaterThan(token)
    await next.release()
    expect(await locks.break('a')).toBeUndefined()
    await locks.close()
  })

  test('writes its token to a majority, including nodes that missed the grant', async () => {
    await using nodes = await startNodes(5)
    const store = await nodes.connected()
    for (const index of [3, 4]) await nodes.servers[index]?.kill()
    await spend(nodes, 'a', ahead(7, 9))
    await hold(store, claimOf('a'))
    for (const index of [3, 4]) await nodes.servers[index]?.start()
    await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
    // The one with the highest is not there when it is broken.
    await nodes.servers[1]?.pause()
    const token = (await store.break('a', { by: 'operator' }, signal)) ?? 0n
    const others = nodes.servers.filter((_, index) => index !== 1)
    const values = await Promise.all(others.map(server => server.call('GET', 'holdfast:redlock:{:a}')))
    expect(values.filter(value => BigInt(String(value).split(' ')[4] ?? 0) >= token).length).toBeGreaterThanOrEqual(3)
    nodes.servers[1]?.resume()
    // Any majority without those that held knows it.
    for (const index of [0, 1]) await nodes.servers[index]?.kill()
    const next = await until('it is had', () => hold(store, claimOf('a')).catch(() => undefined))
    expect(next).toBeGreaterThan(token)
  })

  test('of a name that only a minority holds ends nothing, because no claim has it', async () => {
    await using nodes = await startNodes(3)
    const store = await nodes.connected()
    const id = 'ab'.repeat(16)
    const vote = `1 ${Date.now() + 60_000} held 0 5 60000 ${id} 1 ["somebody","note"]`
    await nodes.servers[0]?.call('SET', 'holdfast:redlock:{:a}', vote)
    expect(await look(store, { name: 'a' })).toEqual([])
    expect(await store.break('a', { by: 'operator' }, signal)).toBeUndefined()
    expect(await nodes.holders('a')).toEqual([id, undefined, undefined])
    // Without one of the other nodes, it may be a lease.
    await nodes.servers[1]?.pause()
    expect(await store.break('a', { by: 'operator' }, signal)).toBe(6n)
    nodes.servers[1]?.resume()
    expect(await hold(store, claimOf('a'))).toBeGreaterThan(6n)
    expect(await store.break('b', { by: 'operator' }, signal)).toBeUndefined()
  })

  test('with a token takes no vote from another claim', async () => {
    await using nodes = await startNodes(3)
    const store = await nodes.connected()
    const other = 'ab'.repeat(16)
    const vote = `1 ${Date.now() + 60_000} held 0 5 60000 ${other} 1 ["somebody","note"]`
    await nodes.servers[2]?.call('SET', 'holdfast:redlock:{:a}', vote)
    const token = await hold(store, claimOf('a'))
    expect(await store.break('a', { by: 'operator', token }, signal)).toBeGreaterThan(token)
    expect(await nodes.holders('a')).toEqual([undefined, undefined, other])
  })

  test('fails when too few nodes answer, and says so', async () => {
    await using nodes = await startNodes(3)
    const locks = createLocks(await nodes.connected())
    const lease = await locks.acquire('a', { heartbeat: false })
    for (const index of [0, 1]) await nodes.servers[index]?.pause()
    expect((await failureOf(locks.break('a'))).code).toBe('STORE_UNAVAILABLE')
    for (const index of [0, 1]) nodes.servers[index]?.resume()
    // It may still have been carried out when they continued.
    await until('it is free', async () => {
      await locks.break('a').catch(() => undefined)
      return (await nodes.holders('a')).every(id => id === undefined)
    })
    await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
    const next = await locks.acquire('a')
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
    await locks.close()
  })
})

describe('the ttl of a grant', () => {
  test('is the requested ttl minus the drift, by default 1 % and 2 ms', async () => {
    await using nodes = await startNodes(3)
    for (const drift of [undefined, 0.01, 0.05, 0.5]) {
      // Holders subtract 1 % and 2 ms from the granted ttl.
      const ttl = expect.closeTo((10_000 * (1 - (drift ?? 0.01))) / 0.99)
      const store = await nodes.connected({ ...TRUSTED, ...(drift && { drift }) })
      const claim = claimOf('a', { ttl: 10_000 })
      const grant = await acquire(store, claim)
      expect(grant).toMatchObject({ held: true, ttl })
      const { token } = grant as { token: bigint }
      expect(await store.renew({ ...claim, token }, signal)).toMatchObject({ token, ttl })
      await store.release({ ...claim, token }, signal)
    }
    const locks = createLocks(await nodes.connected({ ...TRUSTED, drift: 0.5 }), { ttl: 10_000, heartbeat: false })
    const lease = await locks.acquire('a')
    expect(lease.remaining).toBeLessThan(5_000)
    await lease.release()
    await locks.close()
  })

  test.each([
    [1 / 3, 4_500, false],
    [1, 4_500, true],
  ])('with an acquireShare of %f, votes that take 1600 ms of %i ms: held is %s', async (acquireShare, ttl, held) => {
    await using nodes = await startNodes(3)
    const options = { ...TRUSTED, nodeTimeout: 4_000, acquireShare }
    const store = await nodes.connected(options)
    for (const { down } of nodes.proxies) down.delay(1_600)
    const claim = claimOf('a', { ttl })
    if (held) expect(await acquire(store, claim)).toMatchObject({ held: true })
    else {
      const error = await failureOf(acquire(store, claim))
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
      expect(error.message).toMatch(/^the votes took \d+ ms: more than 1500 ms leave too little of the ttl$/)
      // Sooner than by its ttl, which the slow answers have not used up.
      await until('they are given back', async () => (await nodes.holders('a')).every(id => id === undefined))
      expect((await nodes.kept('a')).every(kept => kept?.id === claim.id)).toBe(true)
    }
  })
})
