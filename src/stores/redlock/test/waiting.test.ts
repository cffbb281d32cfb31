import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { monitor } from '../../../../test/monitor.ts'
import { acquire, claimOf, hold, look, nodesOf, signal } from '../../../../test/support.ts'
import { createLocks, type Locks } from '../../../index.ts'
import { heard, type Nodes, startNodes, TRUSTED } from './support.ts'

/** Milliseconds. A third of it is longer than a test may take, so a served waiter was woken. */
const LONG = 200_000

const CLIENT = fileURLToPath(new URL('./client.ts', import.meta.url))

interface Told {
  readonly token?: string
  readonly from?: string
  readonly to?: string
  readonly votes?: Readonly<Record<string, number>>
}

interface Client extends Disposable {
  readonly child: ChildProcess
  readonly told: readonly Told[]
}

/** Another process that waits, and its messages so far. */
function startClient(nodes: Nodes, ...parameters: [name: string, count: number, hold: number, ttl: number]): Client {
  // Node 22.13 does not strip types by itself.
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
  const child = spawn(process.execPath, [...flags, CLIENT, nodes.url(), ...parameters.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const told: Told[] = []
  createInterface({ input: child.stdout }).on('line', line => told.push(JSON.parse(line)))
  return { child, told, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

async function waiters(locks: Locks, name: string): Promise<number> {
  return (await look(locks.store, { name })).filter(({ state }) => state === 'waiting').length
}

test.each([
  ['that wait for one', true],
  ['that come all at once', false],
])('32 waiters of two processes %s are served one at a time, with few split votes', async (_, isHeld) => {
  await using nodes = await startNodes(5)
  const locks = createLocks(await nodes.connected(), { ttl: 5_000 })
  const first = isHeld ? await locks.acquire('a') : undefined
  using one = startClient(nodes, 'a', 16, 5, 15_000)
  using two = startClient(nodes, 'a', 16, 5, 15_000)
  const clients = [one, two]
  const ends = clients.map(({ child }) => once(child, 'exit'))
  if (first) await until('all wait', async () => (await waiters(locks, 'a')) === 32)
  await first?.release()
  for (const [code] of await Promise.all(ends)) expect(code).toBe(0)
  const told = clients.flatMap(client => client.told)
  const holdings = told
    .filter(({ token }) => token !== undefined)
    .map(({ token = 0, from = 0, to = 0 }) => ({ token: BigInt(token), from: BigInt(from), to: BigInt(to) }))
    .sort((a, b) => (a.token < b.token ? -1 : 1))
  expect(holdings).toHaveLength(32)
  for (const [index, { token, from }] of holdings.slice(1).entries()) {
    const before = holdings[index]
    expect(token).toBeGreaterThan(before?.token ?? 0n)
    expect(from).toBeGreaterThan(before?.to ?? 0n)
  }
  const count = (outcome: string): number => told.reduce((sum, { votes }) => sum + (votes?.[outcome] ?? 0), 0)
  expect(count('won')).toBe(32)
  expect(count('unavailable')).toBe(0)
  expect(count('tie')).toBeLessThan(32)
  // Twice each: once on arrival, and once when it is subscribed.
  expect(count('busy')).toBeLessThan(4 * 32)
  await locks.close()
})

test.concurrent('L11: a long queue is read in pages of at most 1,000 waiters', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected({ ...TRUSTED, nodeTimeout: 5_000 })
  await hold(store, claimOf('crowd', { ttl: LONG }))
  const join = (): Promise<unknown> => acquire(store, claimOf('crowd', { ttl: LONG, queue: true }))
  // Not all at once: the time of a request is limited.
  for (let count = 0; count < 2_500; count += 100) await Promise.all(Array.from({ length: 100 }, join))
  const watchers = await Promise.all(nodes.servers.map(monitor))
  const records = await look(store, { name: 'crowd' })
  expect(records.filter(({ state }) => state === 'waiting')).toHaveLength(2_500)
  for (const watcher of watchers) {
    using seen = watcher
    const pages = async (): Promise<string[]> =>
      (await seen.all()).filter(({ command }) => command === 'zrange').map(({ args }) => args.slice(1).join(' '))
    await until('all pages were read', async () => (await pages()).length >= 3)
    expect(await pages()).toEqual(['0 999', '1000 1999', '2000 2999'])
  }
})

test.concurrent('a waiter sends no request until a release wakes it, and then holds', async () => {
  await using nodes = await startNodes(3)
  const holder = createLocks(await nodes.connected(), { ttl: LONG })
  const waiter = createLocks(await nodes.connected(), { ttl: LONG })
  const lease = await holder.acquire('quiet')
  using votes = heard('votes_counted', ({ name }) => name === 'quiet')
  const waiting = waiter.acquire('quiet')
  await until('it waits', async () => (await waiters(holder, 'quiet')) === 1)
  await until('it is heard everywhere', async () => {
    const channels = await Promise.all(nodes.servers.map(server => server.call('PUBSUB', 'CHANNELS')))
    return channels.every(each => (each as string[]).length === 1)
  })
  let before = -1
  await until('it is quiet for a while', async () => {
    before = votes.length
    await sleep(500)
    return votes.length === before
  })
  // It asks twice on arrival, and renews its position only after a third of the ttl.
  expect(before).toBeLessThan(6)
  await lease.release()
  await (await waiting).release()
  expect(votes.length - before).toBeLessThan(4)
  await holder.close()
  await waiter.close()
})

test.concurrent('a release wakes the waiter although a minority of the nodes is dead', async () => {
  await using nodes = await startNodes(5)
  const holder = createLocks(await nodes.connected(), { ttl: LONG })
  const waiter = createLocks(await nodes.connected(), { ttl: LONG })
  for (const dead of [
    [0, 1],
    [2, 4],
  ]) {
    const lease = await holder.acquire('a')
    const waiting = waiter.acquire('a')
    await until('it waits', async () => (await waiters(holder, 'a')) === 1)
    for (const index of dead) await nodes.servers[index]?.pause()
    await lease.release()
    await (await waiting).release()
    for (const index of dead) nodes.servers[index]?.resume()
    await until('all serve', async () => (await nodesOf(holder.store)).every(node => node.state === 'serving'))
  }
  await holder.close()
  await waiter.close()
})

test.concurrent('killed waiters, ahead of and behind others, do not block them', async () => {
  await using nodes = await startNodes(3)
  const locks = createLocks(await nodes.connected(), { ttl: 5_000 })
  const lease = await locks.acquire('a')
  using dead = startClient(nodes, 'a', 3, 60_000, 5_000)
  await until('they wait', async () => (await waiters(locks, 'a')) === 3)
  const alive = Array.from({ length: 2 }, () => locks.acquire('a'))
  await until('all wait', async () => (await waiters(locks, 'a')) === 5)
  dead.child.kill('SIGKILL')
  await once(dead.child, 'exit')
  await lease.release()
  const order = await Promise.all(alive.map(async waiting => (await waiting).release()))
  expect(order).toHaveLength(2)
  expect(dead.told).toEqual([])
  await locks.close()
})

test.concurrent('a holder that is killed keeps a waiter no longer than its ttl', async () => {
  await using nodes = await startNodes(3)
  const locks = createLocks(await nodes.connected(), { ttl: 5_000 })
  using holder = startClient(nodes, 'a', 1, 60_000, 2_000)
  await until('it holds', async () => (await nodes.holders('a')).every(id => id !== undefined))
  const waiting = locks.acquire('a', { wait: 20_000 })
  await until('one waits', async () => (await waiters(locks, 'a')) === 1)
  holder.child.kill('SIGKILL')
  await (await waiting).release()
  await locks.close()
})

test.concurrent('of five clients that try at the same time exactly one holds', async () => {
  await using nodes = await startNodes(5)
  using votes = heard('votes_counted', ({ name }) => name.startsWith('job '))
  const clients = await Promise.all(Array.from({ length: 5 }, async () => createLocks(await nodes.connected())))
  for (let round = 0; round < 20; round += 1) {
    const tries = await Promise.all(clients.map(locks => locks.tryAcquire(`job ${round}`)))
    const held = tries.filter(lease => lease !== undefined)
    expect(held).toHaveLength(1)
    await held[0]?.release()
  }
  expect(votes.filter(({ outcome }) => outcome === 'won')).toHaveLength(20)
  await Promise.all(clients.map(locks => locks.close()))
})

test.concurrent('a tie of two and two is resolved, with and without waiting', async () => {
  await using nodes = await startNodes(4)
  const [p, q, r, s] = nodes.proxies
  const [a, b, c, d] = nodes.servers
  // Each is nearer to half of the nodes, so at the same time each gets two of four.
  for (const proxy of nodes.proxies) proxy.down.delay(0)
  for (const proxy of nodes.proxies) proxy.up.delay(20)
  type Port = { readonly port: number }
  const one = nodes.store(undefined, [a, b, r, s] as Port[])
  const two = nodes.store(undefined, [p, q, c, d] as Port[])
  for (const store of [one, two]) {
    expect(store.kind).toBe('redlock of 4')
    await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
  }
  using votes = heard('votes_counted', ({ name }) => name.startsWith('even '))
  for (let round = 0; round < 5; round += 1) {
    const [first, second] = [claimOf(`even ${round}`), claimOf(`even ${round}`)]
    const answers = await Promise.all([acquire(one, first), acquire(two, second)])
    expect(answers.filter(answer => answer.held)).toHaveLength(1)
  }
  expect(votes.some(({ outcome }) => outcome === 'tie')).toBe(true)
  const [left, right] = [createLocks(one), createLocks(two)]
  for (let round = 0; round < 5; round += 1) {
    const turns = [left, right].map(async locks => (await locks.acquire(`b ${round}`)).release())
    await Promise.all(turns)
  }
  await left.close()
  await right.close()
})

test.concurrent('two of four are no majority', async () => {
  await using nodes = await startNodes(4)
  const store = await nodes.connected()
  const claim = claimOf('a')
  const token = await hold(store, claim)
  for (const index of [0, 3]) await nodes.servers[index]?.pause()
  await expect(hold(store, claimOf('b'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(store.renew({ ...claim, token }, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test.concurrent('a waiter that gives up leaves no position in any queue', async () => {
  await using nodes = await startNodes(3)
  const locks = createLocks(await nodes.connected(), { ttl: 10_000 })
  const lease = await locks.acquire('a')
  const controller = new AbortController()
  const attempts = Promise.allSettled([
    locks.acquire('a', { wait: 1_000 }),
    locks.acquire('a', { signal: controller.signal }),
  ])
  await until('they wait', async () => (await waiters(locks, 'a')) > 0)
  controller.abort(new Error('enough'))
  const outcomes = await attempts
  expect(outcomes.map(outcome => (outcome as PromiseRejectedResult).reason.message)).toEqual([
    expect.stringMatching(/"a" was not acquired within \d+ ms: it is held by/),
    'enough',
  ])
  await until('nobody waits', async () => {
    const lines = await Promise.all(nodes.servers.map(server => server.call('ZCARD', 'holdfast:redlock:{:a}:line')))
    return lines.every(length => length === 0)
  })
  await lease.release()
  await locks.close()
})
