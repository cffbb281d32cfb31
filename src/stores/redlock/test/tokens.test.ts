import { afterEach, describe, expect, test, vi } from 'vitest'
import { type ShiftedClock, startClock } from '../../../../lab/servers/clock.ts'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, failureOf, hold, look, nodesOf, signal } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { heard, type Nodes, spend, startNodes, TRUSTED } from './support.ts'

const HOUR = 3_600_000
const MAX_TTL = 1_000
const CAUTIOUS = { maxTtl: MAX_TTL, nodeTimeout: 250 }

/** Servers, each with its own clock. */
async function startClocks(count: number): Promise<{ nodes: Nodes; clocks: ShiftedClock[] } & AsyncDisposable> {
  const clocks = Array.from({ length: count }, startClock)
  const nodes = await startNodes(count, index => ({ clock: clocks[index] }))
  return {
    nodes,
    clocks,
    async [Symbol.asyncDispose]() {
      await nodes[Symbol.asyncDispose]()
      for (const clock of clocks) clock.stop()
    },
  }
}

/** Sets the wall clock of this process forward, or back, until the end of the test. */
function shiftOwnClock(ms: number): void {
  const right = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => right() + ms)
}
afterEach(() => void vi.restoreAllMocks())

/** Grants it, and gives it back. */
async function grant(store: Store, name = 'a'): Promise<bigint> {
  const claim = claimOf(name, { ttl: MAX_TTL })
  const token = await until('it is had', () => hold(store, claim).catch(() => undefined))
  await store.release({ ...claim, token }, signal)
  return token
}

function expectRising(tokens: readonly bigint[]): void {
  for (const [index, token] of tokens.slice(1).entries()) expect(token).toBeGreaterThan(tokens[index] ?? 0n)
}

/** Never accepts a token below the highest that it has seen. */
class Resource {
  readonly written: string[] = []
  #highest = 0n

  write(token: bigint, text: string): boolean {
    if (token < this.#highest) return false
    this.#highest = token
    this.written.push(text)
    return true
  }
}

test.each(['FLUSHALL', 'a restart'])('tokens rise although every node forgets them by %s', async how => {
  await using nodes = await startNodes(5)
  const store = nodes.store()
  const tokens = [await grant(store)]
  for (let round = 0; round < 3; round += 1) {
    for (const server of nodes.servers) await (how === 'FLUSHALL' ? server.call('FLUSHALL') : server.restart())
    tokens.push(await grant(store))
  }
  expectRising(tokens)
})

test('tokens rise although a different minority forgets them each time', async () => {
  await using nodes = await startNodes(5)
  // As when the clock of every client went back since: floors are of no help, only what nodes remember.
  await spend(nodes, 'a', Array(5).fill(BigInt(Date.now() + HOUR) * 1_000n))
  const store = await nodes.connected()
  const tokens: bigint[] = []
  for (let round = 0; round < 10; round += 1) {
    tokens.push(await grant(store))
    for (const index of [round % 5, (round + 1) % 5]) await nodes.servers[index]?.call('FLUSHALL')
    // One grant updates the servers that lost their counter.
    tokens.push(await grant(store))
  }
  expectRising(tokens)
})

test('tokens rise although the clocks of nodes are set by an hour in different directions', async () => {
  await using set = await startClocks(5)
  using votes = heard('votes_counted', ({ name }) => name === 'a')
  const { nodes, clocks } = set
  const store = await nodes.connected()
  const tokens = [await grant(store)]
  for (const jumps of [
    [HOUR, -HOUR, 0, HOUR, -HOUR],
    [-2 * HOUR, 2 * HOUR, HOUR, 0, 0],
    [HOUR, -HOUR, -HOUR, -HOUR, HOUR],
    [-HOUR, -HOUR, -HOUR, -HOUR, -HOUR],
  ]) {
    for (const [index, ms] of jumps.entries()) clocks[index]?.jumpWall(ms)
    tokens.push(await grant(store), await grant(store))
  }
  expectRising(tokens)
  expect(votes.some(({ outcome, rounds }) => outcome === 'won' && rounds === 1)).toBe(true)
})

describe('with the clock of the client moved', () => {
  test('tokens rise, whichever client grants', async () => {
    await using nodes = await startNodes(3)
    const store = nodes.store()
    const tokens: bigint[] = []
    for (const ms of [0, HOUR, -HOUR, 0, 2 * HOUR, -2 * HOUR]) {
      shiftOwnClock(ms)
      tokens.push(await grant(store), await grant(nodes.store()))
      vi.restoreAllMocks()
    }
    expectRising(tokens)
    // One that is ahead takes the counters no further than to ten seconds from now.
    expect(tokens.at(-1)).toBeLessThan(BigInt(Date.now() + 60_000) * 1_000n)
  })

  test('tokens rise across a loss of all data if it went back by less than the quarantine', async () => {
    await using nodes = await startNodes(3)
    await nodes.age()
    const first = await grant(nodes.store(CAUTIOUS))
    for (const server of nodes.servers) await server.call('FLUSHALL')
    shiftOwnClock(-0.8 * MAX_TTL)
    const locks = createLocks(nodes.store(CAUTIOUS), { ttl: 1_000 })
    const lease = await locks.acquire('a', { wait: 20_000 })
    expect(lease.token).toBeGreaterThan(first)
    await lease.release()
    await locks.close()
  })

  test('beyond the bound: all data lost and the clock set back by more than the outage and maxTtl, tokens fall', async () => {
    await using nodes = await startNodes(3)
    await nodes.age()
    const first = await grant(nodes.store(CAUTIOUS))
    // A release after the loss would reveal the token.
    await until('all know it', async () => (await nodes.kept('a')).every(kept => kept?.token === first + 1n))
    for (const server of nodes.servers) await server.call('FLUSHALL')
    shiftOwnClock(-HOUR)
    const locks = createLocks(nodes.store(CAUTIOUS), { ttl: 1_000 })
    const lease = await locks.acquire('a', { wait: 20_000 })
    expect(lease.token).toBeLessThan(first)
    await lease.release()
    await locks.close()
  })
})

test('two hold when the clocks of a majority jump, and the resource refuses the old holder', async () => {
  await using set = await startClocks(5)
  const { nodes, clocks } = set
  const resource = new Resource()
  const locks = createLocks(await nodes.connected(), { ttl: 20_000, heartbeat: false })
  const old = await locks.acquire('a')
  expect(resource.write(old.token, 'old')).toBe(true)
  await until('all voted', async () => (await nodes.holders('a')).every(id => id !== undefined))
  for (const index of [0, 1, 2]) clocks[index]?.jumpWall(HOUR)
  const rival = createLocks(nodes.store(), { ttl: 20_000 })
  const next = await rival.acquire('a', { wait: 10_000 })
  // Both believe that they hold, and both are right by their own clocks.
  old.assertHeld()
  next.assertHeld()
  expect(next.token).toBeGreaterThan(old.token)
  expect(resource.write(next.token, 'next')).toBe(true)
  expect(resource.write(old.token, 'old again')).toBe(false)
  expect(resource.written).toEqual(['old', 'next'])
  await expect(old.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
  next.assertHeld()
  await next.release()
  await locks.close()
  await rival.close()
})

test('a lease that was extended by clocks set back ends after one more ttl', async () => {
  await using set = await startClocks(3)
  const { nodes, clocks } = set
  const store = await nodes.connected()
  await hold(store, claimOf('a', { ttl: 1_000 }))
  for (const clock of clocks) clock.jumpWall(-HOUR)
  const busy = await acquire(store, claimOf('a', { ttl: 1_000 }))
  expect(busy).toMatchObject({ held: false })
  await until('it has ended', async () => (await acquire(store, claimOf('a', { ttl: 1_000 }))).held)
})

test('a node whose clock is set back waits no longer than maxTtl from then', async () => {
  await using set = await startClocks(3)
  const { nodes, clocks } = set
  for (const clock of clocks) clock.jumpWall(HOUR)
  for (const server of nodes.servers) await server.restart()
  const store = nodes.store(CAUTIOUS)
  const locks = createLocks(store, { ttl: 1_000 })
  await until('they are known', async () => (await nodesOf(store)).every(node => node.state === 'quarantined'))
  for (const clock of clocks) clock.jumpWall(-HOUR)
  const lease = await locks.acquire('a', { wait: 5 * MAX_TTL })
  await lease.release()
  await locks.close()
})

test('a client whose clock is a century ahead corrupts no counter', async () => {
  await using nodes = await startNodes(3)
  shiftOwnClock(100 * 365 * 24 * HOUR)
  const ahead = await grant(nodes.store(TRUSTED))
  vi.restoreAllMocks()
  expect(ahead).toBeLessThan(BigInt(Date.now() + 60_000) * 1_000n)
  expect(await grant(nodes.store(TRUSTED))).toBeGreaterThan(ahead)
})

test.each(['released', 'broken'])(
  'L13: a name whose tokens are used up can be %s, and is free once its keys are deleted',
  async how => {
    await using nodes = await startNodes(3)
    await spend(nodes, 'a', Array(3).fill(9_007_199_254_740_990n))
    const store = nodes.store(TRUSTED)
    const claim = claimOf('a')
    const token = await hold(store, claim)
    expect(token).toBe(9_007_199_254_740_991n)
    if (how === 'released') expect(await store.release({ ...claim, token }, signal)).toBe('released')
    else
      expect(await failureOf(store.break('a', { by: 'me' }, signal))).toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: false,
        message: expect.stringMatching(/its lease was ended.*to start again delete the key holdfast:redlock:\{:a\}/),
      })
    expect(await look(store, { name: 'a' })).toEqual([])
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringMatching('the name has used up its tokens'),
    })
    for (const server of nodes.servers) await server.call('DEL', 'holdfast:redlock:{:a}')
    expect(await hold(store, claimOf('a'))).toBeLessThan(token)
  },
)
