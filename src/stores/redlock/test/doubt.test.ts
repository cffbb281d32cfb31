import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, nodesOf, signal } from '../../../../test/support.ts'
import { connect, createLocks } from '../../../index.ts'
import type { Wire } from '../../redis/client.ts'
import { driverOf } from '../../redis/driver.ts'
import { Identities } from '../identity.ts'
import { RedisMember } from '../member.ts'
import { CAUTIOUS, heard, type Nodes, startNodes } from './support.ts'

const NOTE = 'holdfast:redlock:since'

test('a release ends when all nodes have answered, though most of them may have forgotten', async () => {
  await using nodes = await startNodes(3)
  await nodes.age()
  const store = nodes.store(CAUTIOUS, nodes.servers)
  const claim = claimOf('a', { ttl: 2_000 })
  expect(await acquire(store, claim)).toMatchObject({ held: true })
  for (const server of nodes.servers.slice(1)) await server.call('FLUSHALL')
  expect(await store.release(claim, signal)).toBe('released')
  expect(await nodes.holders('a')).toEqual([undefined, undefined, undefined])
  expect(await store.release(claim, signal)).toBe('gone')
})

test('a node that is full and cannot write its start time grants nothing, and still releases', async () => {
  await using nodes = await startNodes(3)
  await nodes.age()
  const store = nodes.store(CAUTIOUS, nodes.servers)
  const claim = claimOf('a', { ttl: 2_000 })
  const answer = await acquire(store, claim)
  // The third vote may come after the majority's.
  await until('all nodes hold it', async () => (await nodes.holders('a')).every(id => id === claim.id))
  for (const server of nodes.servers) {
    await server.call('SET', NOTE, 'abc 0') // of a run before
    await server.call('CONFIG', 'SET', 'maxmemory', 1)
  }
  const states = (await nodesOf(store)).map(({ state }) => state)
  expect(states).toEqual(['quarantined', 'quarantined', 'quarantined'])
  const token = answer.held ? answer.token : undefined
  await store.release({ ...claim, token }, signal)
  expect(await nodes.holders('a')).toEqual([undefined, undefined, undefined])
})

test("a quarantine begins no earlier than the server's start, however late that is known", async () => {
  await using nodes = await startNodes(1)
  const [server] = nodes.servers as [(typeof nodes.servers)[0]]
  await server.call('SET', NOTE, 'abc 0')
  await server.call('SAVE')
  await server.kill()
  const launched = Date.now()
  await server.start()
  const client = new Redis({ port: server.port, lazyConnect: true })
  const driver = driverOf(client)
  const open = async (closing: AbortSignal): Promise<Wire> => {
    const wire = await driver.open(closing)
    const call: Wire['call'] = async (args, key) => {
      if (args[0] === 'INFO') await sleep(3_000)
      return wire.call(args, key)
    }
    return { ...wire, call }
  }
  const limits = { maxTtl: 20_000, acquireShare: 1 / 3 }
  const options = { name: 'a', prefix: 'holdfast', identities: new Identities(), ...limits }
  const member = new RedisMember({ ...driver, open }, options)
  expect((await member.look('a', 0)).votesIn).toBeGreaterThan(0)
  const [, since] = String(await server.call('GET', NOTE)).split(' ')
  expect(Number(since)).toBeGreaterThanOrEqual(launched)
  member.close()
  client.disconnect()
})

test('a client that may not subscribe polls, and fails no node by that', async () => {
  const users = ['app on >secret ~holdfast:* resetchannels +@all']
  await using nodes = await startNodes(3, () => ({ users }))
  using failed = heard('node_failed', () => true)
  const holder = createLocks(await nodes.connected())
  const locks = await connect(nodes.url('trustRestarted=true&nodeTimeout=1000&username=app&password=secret'))
  const lease = await holder.acquire('a')
  const waiting = locks.acquire('a', { ttl: 2_000 })
  await expect.poll(async () => (await holder.inspect('a')).waiters.length).toBe(1)
  for (let count = 0; count < 20; count += 1) await (await locks.acquire('b', { wait: 0 })).release()
  await lease.release()
  await (await waiting).release()
  expect([...failed].map(({ error }) => error.message)).toEqual([])
  await locks.close()
  await holder.close()
})

/** The only node, past all stores. */
function memberOf({ servers: [server] }: Nodes): RedisMember & Disposable {
  const client = new Redis({ port: server?.port ?? 0, lazyConnect: true })
  const options = { name: 'a', prefix: 'holdfast', identities: new Identities(), maxTtl: 0, acquireShare: 1 / 3 }
  const member = new RedisMember(driverOf(client), options)
  return Object.assign(member, {
    [Symbol.dispose]() {
      member.close()
      client.disconnect()
    },
  })
}

test('a break ends no later vote of a claim that it names, and raises the token only where no vote is left', async () => {
  await using nodes = await startNodes(1)
  using member = memberOf(nodes)
  const claim = claimOf('a')
  const broken = async (seen: number, token: number): Promise<unknown> =>
    (await member.break('a', new Map([[claim.id, seen]]), token)).value
  await member.vote(claim, 5)
  expect(await broken(4, 8)).toEqual({ hasEnded: false, isRaised: false, token: 5 })
  expect(await broken(5, 8)).toEqual({ hasEnded: true, isRaised: true, token: 8 })
  expect(await broken(5, 8)).toEqual({ hasEnded: false, isRaised: false, token: 8 })
  expect(await broken(5, 9)).toEqual({ hasEnded: false, isRaised: true, token: 9 })
  expect((await member.vote(claim, 5)).value).toMatchObject({ token: 10 })
})

test.each([
  ['', false],
  [' and it waited', true],
] as const)('a claim that was released while another had the vote%s is not restored', async (_, waits) => {
  await using nodes = await startNodes(1)
  using member = memberOf(nodes)
  const [claim, rival] = [{ ...claimOf('a', { queue: true }), token: 9n }, claimOf('a')]
  await member.vote(rival, 5)
  if (waits) await member.vote(claim, 4)
  expect((await member.release(claim)).value).toBe(waits)
  await member.concede(rival, 5, false)
  expect((await member.renew(claim, true, 1)).value.state).toBe('lost')
  expect((await member.renew({ ...claimOf('a'), token: 9n }, true, 1)).value.state).toBe('held')
})

test('a vote with a higher token than the lease is not renewed, and gets no note', async () => {
  await using nodes = await startNodes(1)
  using member = memberOf(nodes)
  const claim = claimOf('a')
  const states = async (token?: bigint): Promise<string[]> => [
    (await member.renew({ ...claim, token }, false, 1)).value.state,
    (await member.annotate({ ...claim, token }, 1)).value.state,
  ]
  await member.vote(claim, 9)
  expect(await states(8n)).toEqual(['lost', 'lost'])
  expect(await states()).toEqual(['held', 'held'])
  expect(await states(10n)).toEqual(['held', 'held'])
})

test('R6: a commit writes no token to a vote that a later attempt of the claim has kept', async () => {
  await using nodes = await startNodes(1)
  using member = memberOf(nodes)
  const claim = claimOf('a')
  const commit = async (attempt: number): Promise<boolean> => (await member.commit(claim, attempt, 5, 9)).value
  await member.vote(claim, 5)
  await member.vote(claim, 6)
  expect(await commit(5)).toBe(false)
  expect((await member.vote(claim, 6)).value).toMatchObject({ token: 5 })
  expect(await commit(6)).toBe(true)
  expect((await member.vote(claim, 6)).value).toMatchObject({ token: 9 })
})
