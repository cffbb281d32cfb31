import { describe, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, failureOf, hold, nodesOf, signal } from '../../../../test/support.ts'
import { createLocks, type LeaseError } from '../../../index.ts'
import { IMPATIENT, type Nodes, spend, startNodes, TRUSTED } from './support.ts'

/** Milliseconds: much longer than all that is waited for here, so that nothing is gone because it ran out. */
const TTL = 25_000

const ways = {
  async 'the answer is lost'(nodes: Nodes, index: number, verb: string): Promise<void> {
    await nodes.proxies[index]?.loseReply(`${verb} `)
  },
  async 'the connection is cut'(nodes: Nodes, index: number, verb: string): Promise<void> {
    await nodes.proxies[index]?.cutAfterRequest(`${verb} `)
  },
} as const

async function freeEverywhere(nodes: Nodes, name: string): Promise<void> {
  await until('nothing is left', async () => (await nodes.holders(name)).every(id => id === undefined))
}

function tooLate(error: LeaseError): undefined {
  expect(error.code).toBe('STORE_UNAVAILABLE')
}

/** Counters that no clock makes equal. */
const uneven = [1n, 5n, 3n, 2n, 4n].map(n => BigInt(Date.now() + 3_600_000) * 1_000n + n)

describe.concurrent.each(Object.entries(ways))('when it is done and %s', (_, lose) => {
  test('a release withdraws the vote of one node', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
    const lost = lose(nodes, 3, 'vote')
    const lease = await locks.acquire('a')
    await lost
    await until('it voted', async () => (await nodes.holders('a'))[3] !== undefined)
    await lease.release()
    await freeEverywhere(nodes, 'a')
    await locks.close()
  })

  test('the votes of a majority are withdrawn after the rejection, or belong to the claim when it asks again', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
    const voted = Promise.all([0, 2, 4].map(index => lose(nodes, index, 'vote')))
    await expect(locks.tryAcquire('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await voted
    await freeEverywhere(nodes, 'a')
    await nodes.heal()
    await until('all serve', async () => (await nodesOf(locks.store)).every(node => node.state === 'serving'))
    const votedAgain = Promise.all([0, 2, 4].map(index => lose(nodes, index, 'vote')))
    const lease = await locks.acquire('a')
    await votedAgain
    expect(await createLocks(await nodes.connected()).tryAcquire('a')).toBeUndefined()
    await lease.release()
    await freeEverywhere(nodes, 'a')
    await locks.close()
  })

  test('the store itself withdraws them, even if the claim is not released', async () => {
    await using nodes = await startNodes(5)
    const store = await nodes.connected(IMPATIENT)
    const voted = Promise.all([0, 1, 4].map(index => lose(nodes, index, 'vote')))
    const error = await failureOf(acquire(store, claimOf('a', { ttl: TTL })))
    expect(error.code).toBe('STORE_UNAVAILABLE')
    await voted
    await freeEverywhere(nodes, 'a')
  })

  test('a commit is withdrawn with the votes, also with later ones', async () => {
    await using nodes = await startNodes(5)
    await spend(nodes, 'a', uneven)
    // Time for one attempt, and none for another.
    const store = await nodes.connected({ ...IMPATIENT, acquireShare: 350 / TTL })
    for (const index of [3, 4]) nodes.proxies[index]?.down.delay(60)
    let isLost = false
    void lose(nodes, 2, 'commit').then(() => {
      isLost = true
    })
    // On a busy machine an attempt may end before it commits.
    await until('the commit is lost', async () => {
      const claim = claimOf('a', { ttl: TTL })
      // After a cut there may be the time; what comes of it too late is taken back too.
      const answer = await acquire(store, claim).catch(tooLate)
      if (answer?.held) await store.release(claim, signal)
      return isLost
    })
    await freeEverywhere(nodes, 'a')
  })

  test('a release is still confirmed', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
    const lease = await locks.acquire('a')
    const lost = Promise.all([1, 2, 3].map(index => lose(nodes, index, 'release')))
    await lease.release()
    await lost
    await freeEverywhere(nodes, 'a')
    await locks.close()
  })

  test('a renewal is repeated, and the lease is held', async () => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: 3_000 })
    const lease = await locks.acquire('a')
    const lost = Promise.all([0, 1, 2].map(index => lose(nodes, index, 'renew')))
    const failure = await failureOf(lease.extend())
    expect(failure.code).toMatch(/^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
    await lost
    lease.assertHeld()
    await until('it is renewed', () => lease.extend().catch(() => 0))
    await lease.release()
    await freeEverywhere(nodes, 'a')
    await locks.close()
  })
})

test.concurrent('requests to a paused majority that were given up leave nothing behind when it continues', async () => {
  await using nodes = await startNodes(5)
  const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
  for (const index of [1, 2, 3]) await nodes.servers[index]?.pause()
  await expect(locks.tryAcquire('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  for (const index of [1, 2, 3]) nodes.servers[index]?.resume()
  await freeEverywhere(nodes, 'a')
  await (await locks.acquire('a')).release()
  await locks.close()
})

test.concurrent('a vote that arrives after its claim was withdrawn is refused', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = claimOf('a', { ttl: TTL })
  nodes.proxies[2]?.up.hold()
  await hold(store, claim)
  // By another connection the release comes first.
  expect(await nodes.store(TRUSTED, nodes.servers).release(claim, signal)).toBe('released')
  nodes.proxies[2]?.up.pass()
  await (await createLocks(store).acquire('b')).release()
  await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
  expect(await nodes.holders('a')).toEqual([undefined, undefined, undefined])
})

test.concurrent('a renewal that arrives after a later one does not shorten the lease', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = claimOf('a', { ttl: TTL })
  const holder = { ...claim, token: await hold(store, claim) }
  await until('all vote', async () => (await nodes.holders('a')).every(id => id === claim.id))
  nodes.proxies[2]?.up.hold()
  await store.renew({ ...holder, ttl: TTL / 2 }, signal)
  // By another connection the later one comes first.
  await nodes.store(TRUSTED, nodes.servers).renew(holder, signal)
  const ends = async (): Promise<number> => {
    const value = await nodes.servers[2]?.call('GET', 'holdfast:redlock:{:a}')
    return Number(String(value).split(' ')[1])
  }
  await until('it is renewed', async () => (await ends()) > Date.now() + 0.7 * TTL)
  nodes.proxies[2]?.up.pass()
  await (await createLocks(store).acquire('b')).release()
  await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
  expect(await ends()).toBeGreaterThan(Date.now() + 0.6 * TTL)
})

test.concurrent('an attempt that gives up the votes of a majority wakes the first waiter', async () => {
  await using nodes = await startNodes(3)
  await spend(nodes, 'a', uneven.slice(0, 3))
  const store = await nodes.connected()
  const waiters = createLocks(nodes.store(TRUSTED, nodes.servers), { ttl: TTL })
  for (const index of [0, 1, 2]) void ways['the answer is lost'](nodes, index, 'commit')
  const claim = claimOf('a', { ttl: TTL, queue: true })
  const attempt = acquire(store, claim)
  await until('it has the votes', async () => (await nodes.holders('a')).every(id => id === claim.id))
  const waiting = waiters.acquire('a')
  expect(await attempt).toMatchObject({ held: false })
  const started = performance.now()
  await (await waiting).release()
  // By itself it would ask 5 s after its first request. The attempt is given up after 2 s.
  expect(performance.now() - started).toBeLessThan(1_500)
  await waiters.close()
})

test.concurrent('closing while votes are in flight leaves nothing behind', async () => {
  await using nodes = await startNodes(5)
  for (const delay of [0, 1, 3, 10, 30]) {
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
    for (const { down } of nodes.proxies) down.delay(delay)
    const attempts = [
      failureOf(locks.acquire('a').then(() => Promise.reject(new Error('held')))),
      failureOf(locks.tryAcquire('b').then(() => Promise.reject(new Error('held')))),
    ]
    await new Promise(resolve => setTimeout(resolve, delay / 2))
    await locks.close({ grace: 0 })
    for (const error of await Promise.all(attempts)) expect(error.message).toMatch(/^held$|closed/)
    await freeEverywhere(nodes, 'a')
    await freeEverywhere(nodes, 'b')
    for (const { down } of nodes.proxies) down.pass()
  }
})
