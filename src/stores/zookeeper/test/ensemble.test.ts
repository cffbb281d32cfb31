import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { type Ensemble, startEnsemble, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { createLocks, type Locks } from '../../../index.ts'
import { claimOf, failureOf, hold, signal, storeOf, watchesOf } from './support.ts'

let ensemble: Ensemble

beforeAll(async () => {
  ensemble = await startEnsemble()
})
afterEach(async () => {
  for (const server of ensemble.servers) if (!server.isRunning) await server.start()
  await ensemble.leader()
})
afterAll(() => ensemble.stop())

/** How many watches the servers that run have. */
async function watches(): Promise<number> {
  const running = ensemble.servers.filter(({ isRunning }) => isRunning)
  const counts = await Promise.all(running.map(watchesOf))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function followers(of: Ensemble = ensemble): Promise<ZooKeeperServer[]> {
  const leader = await of.leader()
  return of.servers.filter(server => server !== leader)
}

test('a lease outlives its leader, with the same token, and waiters are served in order', {
  timeout: 60_000,
}, async () => {
  const open = (): Locks => createLocks(storeOf(ensemble.servers), { ttl: 10_000 })
  await using locks = open()
  await using first = open()
  await using second = open()
  await using third = open()
  const lease = await locks.acquire('leader')
  const served: number[] = []
  const waits = [first, second, third].map(async (own, index) => {
    await until('those before it wait', async () => (await locks.inspect('leader')).waiters.length === index)
    await using next = await own.acquire('leader')
    served.push(index)
    expect(next.token).toBeGreaterThan(lease.token)
  })
  await until('all wait', async () => (await locks.inspect('leader')).waiters.length === 3)
  const leader = await ensemble.leader()
  await leader.kill()
  await until('it is renewed after that', () => lease.extend().catch(() => undefined))
  lease.assertHeld()
  const { holders, waiters } = await until('it is seen', () => locks.inspect('leader').catch(() => undefined))
  expect([holders[0]?.token, waiters.length]).toEqual([lease.token, 3])
  // A waiter that has not reconnected yet may miss its grace period. Each watches the two nodes before it. The server counts
  // watches of one session on one node as one, so each waiter has its own session.
  await until('all listen again', async () => (await watches()) === 5)
  await lease.release()
  await Promise.all(waits)
  expect(served).toEqual([0, 1, 2])
})

test('a holder whose server is killed continues over another, in the same session', async () => {
  const [one, two] = (await followers()) as [ZooKeeperServer, ZooKeeperServer]
  await using store = storeOf([one, two])
  const claim = claimOf('moves', { ttl: 10_000 })
  const { token } = await hold(store, claim)
  const session = async (): Promise<string | undefined> =>
    /(0x\w+):\s+\/holdfast\/moves/.exec(await (await ensemble.leader()).ask('dump'))?.[1]
  const before = await session()
  expect(before).toBeDefined()
  for (const server of [one, two]) {
    await server.kill()
    const renewed = await until('it is renewed', () => store.renew(claim, signal).catch(() => undefined))
    expect(renewed.token).toBe(token)
    await server.start()
  }
  expect(await session()).toBe(before)
  expect(await store.release(claim, signal)).toBe('released')
})

test('a holder whose follower is cut off from the leader after an answer is notified before another can hold', {
  timeout: 60_000,
}, async () => {
  const ttl = 2_500
  await using ensemble = await startEnsemble({ hasProxies: true })
  for (let round = 0; round < 2; round += 1) {
    const [follower] = (await followers(ensemble)) as [ZooKeeperServer]
    const leader = await ensemble.leader()
    await using locks = createLocks(storeOf(follower), { ttl })
    await using rival = storeOf(leader)
    const lease = await locks.acquire(`cut-${round}`)
    let told = Number.POSITIVE_INFINITY
    lease.signal.addEventListener('abort', () => {
      told = performance.now()
    })
    // By now its session is older, and what counts is when the leader last received a request of it.
    for (let turn = 0; turn < 3 + round; turn += 1) {
      await new Promise(resolve => setTimeout(resolve, ttl / 3))
      await until('it is renewed', () => lease.extend().catch(() => undefined))
    }
    const proxy = ensemble.proxy(follower, leader)
    proxy.up.drop()
    const next = claimOf(lease.name)
    await until('it is passed on', async () => (await rival.acquire(next, signal)).held, { limit: 20_000 })
    const margin = performance.now() - told
    proxy.up.pass()
    expect(margin).toBeGreaterThan(0)
    expect(() => lease.assertHeld()).toThrow('was not renewed in time')
    await rival.release(next, signal)
  }
})

test('a lagging follower never makes a lease count as gone', async () => {
  await using ensemble = await startEnsemble({ hasProxies: true })
  const [follower] = (await followers(ensemble)) as [ZooKeeperServer]
  const leader = await ensemble.leader()
  await using behind = storeOf(follower)
  await using ahead = storeOf(leader)
  await behind.acquire(claimOf('warm'), signal)
  await Array.fromAsync(behind.inspect({ name: 'warm' }, signal)) // has the session to look, too
  const proxy = ensemble.proxy(follower, leader)
  proxy.down.hold()
  const claim = claimOf('lags')
  const { token } = await hold(ahead, claim)
  const asks = {
    renew: () => behind.renew(claim, signal),
    annotate: () => behind.annotate({ ...claim, note: 'new' }, signal),
  }
  const answers = Object.values(asks).map(ask => ask().catch(() => 'nobody knows'))
  const soon = new Promise(resolve => setTimeout(resolve, 300, 'nothing yet'))
  for (const answer of answers) expect(await Promise.race([answer, soon])).toMatch(/nobody knows|nothing yet/)
  proxy.down.pass()
  const renewed = await until('it is renewed', () => asks.renew().catch(() => undefined))
  expect(renewed.token).toBe(token)
  await until('its note is written', () => asks.annotate().catch(() => undefined))
  expect(await Array.fromAsync(ahead.inspect({ name: 'lags' }, signal))).toMatchObject([{ note: 'new', token }])
})

test('a minority grants nothing, and rejects in time', async () => {
  const [one] = (await followers()) as [ZooKeeperServer]
  const others = ensemble.servers.filter(server => server !== one)
  await using store = storeOf(one)
  const claim = claimOf('minority', { ttl: 2_000 })
  await hold(store, claim)
  await Promise.all(others.map(server => server.kill()))
  const error = await failureOf(store.renew(claim, signal))
  expect(error.code).toMatch(/STORE_UNAVAILABLE|OUTCOME_UNKNOWN/)
  await Promise.all(others.map(server => server.start()))
  await until('it serves again', () => hold(store, claimOf('minority-2')).catch(() => undefined))
})

test('unresponsive endpoints are skipped', async () => {
  await using silent = await startProxy(ensemble.servers[0] as ZooKeeperServer)
  silent.down.drop()
  await using refusing = await startProxy(ensemble.servers[0] as ZooKeeperServer)
  await refusing.refuse()
  for (let round = 0; round < 5; round += 1) {
    await using store = storeOf([silent, refusing, ensemble.servers[1] as ZooKeeperServer])
    await hold(store, claimOf(`half-${round}`, { ttl: 3_000 }))
  }
})

test('tokens rise and stay unique while leaders die', { timeout: 60_000 }, async () => {
  const stores = ensemble.servers.map(server => storeOf([server, ...ensemble.servers]))
  const tokens: bigint[] = []
  let goes = true
  const work = stores.map(async store => {
    while (goes) {
      const locks = createLocks(store, { ttl: 2_000 })
      const lease = await locks.acquire('contended', { wait: 10_000 }).catch(() => undefined)
      if (!lease) continue
      tokens.push(lease.token)
      await lease.release()
    }
  })
  for (let round = 0; round < 2; round += 1) {
    const before = tokens.length
    const leader = await ensemble.leader()
    await leader.kill()
    await until('there are grants again', () => tokens.length > before + 20, { limit: 20_000 })
    await leader.start()
  }
  goes = false
  await Promise.all(work)
  expect(new Set(tokens).size).toBe(tokens.length)
  expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)))
  await Promise.all(stores.map(store => store[Symbol.asyncDispose]()))
})
