/** Names that several claims hold, where processes meet at the server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { type Busy, type Claim, type Grant, LARGEST_LIMIT, type Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { Disconnected } from '../failure.ts'
import { Group } from '../group.ts'
import { newNode } from '../nodes.ts'
import { create, remove } from '../protocol.ts'
import { Queues } from '../queues.ts'
import { claimOf, connectionTo, hold, look, nodesOf, signal, storeOf } from './support.ts'

const OPEN = { permissions: 31, scheme: 'world', id: 'anyone' }

let server: ZooKeeperServer
let store: Store
let other: Store

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())
beforeEach(() => {
  const stores = [storeOf(server), storeOf(server)] as const
  ;[store, other] = stores
  return async () => void (await Promise.all(stores.map(each => each[Symbol.asyncDispose]())))
})

/** Calls `meanwhile` when the next claim is about to be granted, after it has read the queue. */
function beforeGrant(meanwhile: () => Promise<unknown>): void {
  const { take } = Group.prototype
  vi.spyOn(Group.prototype, 'take').mockImplementationOnce(async function (this: Group, ...parameters) {
    await meanwhile()
    return take.apply(this, parameters)
  })
}

function permitOf(name: string, parameters: Partial<Claim> = {}): Claim {
  return claimOf(name, { limit: 3, ...parameters })
}

test('fifty readers of four processes that come at once all hold, each in a slot of its own', async () => {
  const stores = Array.from({ length: 4 }, () => storeOf(server))
  const all = stores.map(each => createLocks(each))
  const readers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => all[index % 4]?.readWrite('crowd').reader.acquire()),
  )
  const records = await look(store, { name: 'crowd' })
  expect(records.map(({ state }) => state)).toEqual(Array(50).fill('held'))
  expect(records.map(({ slots = [0] }) => slots[0])).toEqual(Array.from({ length: 50 }, (_, slot) => slot))
  await Promise.all(readers.map(async reader => reader?.release()))
  await Promise.all(all.map(locks => locks.close()))
})

test('as many claims as there are slots, which only try and come at once through several processes, all hold', async () => {
  const claims = Array.from({ length: 30 }, () => claimOf('tries', { limit: 30 }))
  const grants = await Promise.all(claims.map((claim, index) => hold(index % 2 ? store : other, claim)))
  const slots = grants.map(grant => slotOf(grant)).sort((a, b) => a - b)
  expect(slots).toEqual(claims.map((_, slot) => slot))
  expect(new Set(grants.map(({ token }) => token)).size).toBe(30)
})

test('claims of all limits that come and go at once through several processes never have what others have', async () => {
  const stores = Array.from({ length: 3 }, () => storeOf(server))
  const inside = new Map<number, number>()
  let grants = 0
  let last = 0n
  const work = async (of: Store, index: number): Promise<void> => {
    for (let turn = 0; turn < 8; turn += 1) {
      const limit = [1, 2, 4, LARGEST_LIMIT][(index + turn) % 4] as number
      const units = limit > 2 ? 1 + (turn % 2) : 1
      const claim = claimOf('mixed', { limit, units, queue: index % 3 > 0 })
      const answer = await until('it is granted', async () => {
        const answer = await of.acquire(claim, signal)
        if (!answer.held) await sleep(Math.random() * 20)
        return answer.held ? answer : undefined
      })
      const slots = answer.slots ?? [0]
      expect(slots).toHaveLength(units)
      for (const slot of slots) {
        expect(inside.has(slot), `slot ${slot} is used twice`).toBe(false)
        inside.set(slot, limit)
      }
      expect(Math.max(...inside.keys())).toBeLessThan(Math.min(...inside.values()))
      grants += 1
      if (answer.token > last) last = answer.token
      await sleep(Math.random() * 5)
      for (const slot of slots) inside.delete(slot)
      expect(await of.release(claim, signal)).toBe('released')
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, index) => work(stores[index % 3] as Store, index)))
  expect(grants).toBe(96)
  expect(await look(store, { name: 'mixed' })).toEqual([])
  expect((await hold(store, claimOf('mixed'))).token).toBeGreaterThan(last)
  await Promise.all(stores.map(each => each[Symbol.asyncDispose]()))
})

test('a lock that comes while a permit is granted never holds beside it', async () => {
  for (const queue of [false, true]) {
    const [permit, lock] = [permitOf('raced', { queue }), claimOf('raced')]
    let locked: Grant | Busy | undefined
    beforeGrant(async () => {
      locked = await other.acquire(lock, signal)
    })
    const answers = [await store.acquire(permit, signal), locked]
    expect(answers.filter(answer => answer?.held)).toHaveLength(1)
    expect((await look(other, { name: 'raced' })).filter(({ state }) => state === 'held')).toHaveLength(1)
    await Promise.all([store.release(permit, signal), other.release(lock, signal)])
  }
})

test('of two permits that are granted at once, each has a slot of its own', async () => {
  const [one, two] = [permitOf('both'), permitOf('both')]
  let second: Grant | undefined
  beforeGrant(async () => {
    second = await hold(other, two)
  })
  const first = await hold(store, one)
  expect([slotOf(first), second && slotOf(second)]).toEqual([1, 0])
  expect(first.token).toBeGreaterThan(second?.token ?? 0n)
})

test('a claim that is granted while its name is broken gets a token above the break', async () => {
  const [holder, next] = [permitOf('broken'), permitOf('broken')]
  await hold(store, holder)
  let broken: bigint | undefined
  beforeGrant(async () => {
    broken = await other.break('broken', { by: 'test' }, signal)
  })
  const { token } = await hold(store, next)
  expect(token).toBeGreaterThan(broken ?? token)
  expect(await store.renew(holder, signal)).toBeUndefined()
  expect((await look(store, { name: 'broken' })).map(record => record.token)).toEqual([token])
})

test('a break also ends the lease that is granted while it decides', async () => {
  const [holder, next] = [permitOf('breaking'), permitOf('breaking')]
  await hold(store, holder)
  const { lookAtNewest } = Queues.prototype
  let granted: Grant | undefined
  vi.spyOn(Queues.prototype, 'lookAtNewest').mockImplementationOnce(async function (this: Queues, ...parameters) {
    const queue = await lookAtNewest.apply(this, parameters)
    granted = await hold(store, next)
    return queue
  })
  const broken = await other.break('breaking', { by: 'test' }, signal)
  expect(broken).toBeGreaterThan(granted?.token ?? 0n)
  expect(await look(other, { name: 'breaking' })).toEqual([])
})

test('a permit is not granted behind a lock that will hold as soon as a try before it is over', async () => {
  const connection = await connectionTo(server)
  const permit = permitOf('behind', { queue: true })
  await hold(store, permit)
  const paths: string[] = []
  for (const kind of ['t', 'c'] as const) {
    const node = `/holdfast/behind/${newNode(kind, claimOf('behind'), 0)}`
    paths.push((await connection.send(create(node, '', OPEN, 'ephemeral sequential'))).path)
  }
  await store.release(permit, signal)
  const next = permitOf('behind', { queue: true })
  const [trying, lock] = paths as [string, string]
  expect(await store.acquire(next, signal)).toMatchObject({ held: false })
  await connection.send(remove(trying))
  expect(await store.acquire(next, signal)).toMatchObject({ held: false, holder: { limit: undefined } })
  await connection.send(remove(lock))
  await until('it is granted', async () => (await store.acquire(next, signal)).held)
  connection.end(new Disconnected('over'))
})

test('a permit is not refused because of a lock whose process is about to find out that it does not hold', async () => {
  await hold(store, permitOf('unsettled'))
  const connection = await connectionTo(server)
  const lock = claimOf('unsettled')
  const path = `/holdfast/unsettled/${newNode('c', lock, 0)}`
  const created = await connection.send(create(path, '', OPEN, 'ephemeral sequential'))
  const tried = other.acquire(permitOf('unsettled'), signal)
  await until('it tries', async () => (await nodesOf(server, 'unsettled')).some(node => node.startsWith('t')))
  await connection.send(remove(created.path))
  expect(await tried).toMatchObject({ held: true, slots: [1] })
  connection.end(new Disconnected('over'))
})

test('a permit that moves to the session of another client, or of another ttl, keeps its token and its slots', async () => {
  const claim = permitOf('moves', { units: 2 })
  await hold(store, permitOf('moves'))
  const { token } = await hold(store, claim)
  for (const [of, ttl] of [
    [other, 10_000],
    [store, 60_000],
    [other, 4_000],
    [store, 10_000],
  ] as const)
    expect(await of.renew({ ...claim, ttl }, signal)).toMatchObject({ token, slots: [1, 2] })
  expect(await nodesOf(server, 'moves')).toHaveLength(2)
})

test('waiters of a process that is cut off block others for a few seconds, however long their ttl', {
  timeout: 60_000,
}, async () => {
  await using proxy = await startProxy(server)
  await using dead = storeOf(proxy)
  const holder = claimOf('dead waiters')
  await hold(store, holder)
  const terms = { queue: true, ttl: 24_000 }
  for (let count = 0; count < 3; count += 1) await dead.acquire(claimOf(holder.name, terms), signal)
  await proxy.refuse()
  await using locks = createLocks(other)
  const next = locks.acquire(holder.name, { wait: 20_000 }) // a session of 24 s lasts 40
  await until('it waits', async () => (await nodesOf(server, 'dead%20waiters')).length === 5)
  await store.release(holder, signal)
  await (await next).release()
})

test('a waiter that is watched keeps its position, and the session in which it will hold, without asking', {
  timeout: 60_000,
}, async () => {
  await using proxy = await startProxy(server)
  await using far = storeOf(proxy)
  const [holder, waiter] = [claimOf('kept'), claimOf('kept', { queue: true, ttl: 4_000, owner: 'far' })]
  await hold(store, holder)
  expect(await far.acquire(waiter, signal)).toMatchObject({ held: false, listens: true, kept: true })
  const controller = new AbortController()
  let wakes = 0
  const wake = (): void => {
    wakes += 1
  }
  await far.watch?.(waiter, wake, controller.signal)
  await sleep(9_000) // longer than both sessions
  expect(wakes).toBe(0)
  await store.release(holder, signal)
  await until('it is woken', () => wakes > 0)
  await proxy.refuse() // it takes the name over the connections that it has
  await far.acquire(waiter, signal).catch(() => {})
  expect(await look(store, { name: 'kept' })).toMatchObject([{ state: 'held', owner: 'far' }])
  controller.abort()
})

function slotOf({ slots = [0] }: Grant): number {
  return slots[0] as number
}
