import { Cluster } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { Cluster as ValkeyCluster } from 'iovalkey'
import { createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisCluster, startCluster } from '../../../../lab/servers/cluster.ts'
import type { RedisServer } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { request } from '../../../contract/request.ts'
import type { Claim, Grant, Store } from '../../../contract/store.ts'
import { requestLimit, systemClock } from '../../../contract/time.ts'
import type { RedisClient } from '../index.ts'
import { Keys, slotOf } from '../keys.ts'
import { acquire, claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

const PREFIX = '{slot}'
const keys = new Keys(PREFIX)

let cluster: RedisCluster
let store: Store

beforeAll(async () => {
  cluster = await startCluster()
  store = storeOf(clients.ioredis?.() as RedisClient, PREFIX)
})
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await cluster.stop()
})
beforeEach(async () => {
  for (const node of cluster.nodes) await node.call('FLUSHALL')
})

// valkey-glide asks again by itself, and then reports a timeout.
const clients: Record<string, () => RedisClient> = {
  ioredis: () => new Cluster(nodes(), { lazyConnect: true }),
  ioredis5: () => new Cluster5(nodes(), { lazyConnect: true }),
  iovalkey: () => new ValkeyCluster(nodes(), { lazyConnect: true }),
  'node-redis': () => createCluster({ rootNodes: nodes().map(socket => ({ socket })) }),
  'node-redis4': () => createCluster4({ rootNodes: nodes().map(socket => ({ socket })) }),
}

function nodes(): { host: string; port: number }[] {
  return cluster.nodes.map(({ port }) => ({ host, port }))
}

/** The keys of a name: that of its lease, and those that claims share. */
const KINDS = ['', ':line', ':lapse', ':claim'] as const

/** Every way to divide the keys of a name between two nodes: those that have moved. */
const divisions = Array.from({ length: 2 ** KINDS.length }, (_, bits) =>
  KINDS.filter((_, index) => Math.floor(bits / 2 ** index) % 2 === 1),
)

/** So many that their requests take two calls at once. */
const names = ['a', 'b', 'a:b', '{', '}', ' ', ...Array.from({ length: 50 }, (_, index) => `${index}`)]

test.each(Object.entries(clients))('%s loses no lease while the keys of a slot are on two nodes', async (_, create) => {
  await using store = storeOf(create(), PREFIX)
  const claims = names.map(each => claimOf(each))
  await Promise.all(claims.map(claim => hold(store, claim)))
  await using slot = await openSlot()
  await slot.moveSome(names.length / 2)
  const waiter = claimOf('a', { queue: true })
  const [renewed, busy, waits, free] = await Promise.all([
    Promise.all(claims.map(claim => store.renew(claim, signal))),
    store.acquire(claimOf('b'), signal),
    store.acquire(waiter, signal),
    store.acquire(claimOf('free'), signal),
  ])
  expect(renewed.filter(grant => grant?.held)).toHaveLength(names.length)
  expect([busy.held, waits.held, free.held]).toEqual([false, false, true])
  const [first, ...others] = claims as [Claim, ...Claim[]]
  const released = await Promise.all(others.map(claim => store.release(claim, signal)))
  expect(new Set(released)).toEqual(new Set(['released']))
  await Promise.all(others.map(({ name }) => hold(store, claimOf(name))))
  await slot.close()
  expect(await store.acquire(waiter, signal)).toMatchObject({ held: false, ahead: 0 })
  expect(await store.release(first, signal)).toBe('released')
  expect((await store.acquire(waiter, signal)).held).toBe(true)
})

describe.each([false, true])('permits while the slot moves, with a waiter: %s', hasWaiter => {
  test('are renewed and released where their keys are together, and get no wrong answer where they are not', async () => {
    for (const moved of divisions) {
      const name = nameOf(moved)
      const [stays, leaves, further] = [permitOf(name), permitOf(name), permitOf(name)]
      for (const permit of [stays, leaves]) await hold(store, permit)
      if (hasWaiter) await acquire(store, claimOf(name, { queue: true }))
      await using slot = await openSlot()
      await slot.move(name, moved)
      const answers = [
        await answerOf(store.renew(stays, signal)),
        await answerOf(store.annotate(stays, signal)),
        await answerOf(store.acquire(further, signal)),
        await answerOf(slotsOf(name)),
        await answerOf(store.release(leaves, signal)),
      ] as const
      const [, , granted, , released] = answers
      const sides = ['', ':line', ':claim'].map(kind => moved.some(each => each === kind))
      const isTogether = sides.every(side => side === sides[0])
      expect({ moved, answers }).toMatchObject({
        answers: [
          isTogether ? { held: true } : expect.toSatisfy(answer => answer === 'unavailable' || isGrant(answer)),
          expect.toBeOneOf(isTogether ? [true] : [true, 'unavailable']),
          expect.toSatisfy(answer => answer === 'unavailable' || answer.held !== hasWaiter),
          expect.toBeOneOf(['unavailable', isGrant(granted) ? [0, 1, 2] : [0, 1]]),
          expect.toBeOneOf(isTogether ? ['released'] : ['released', 'unavailable']),
        ],
      })
      if (isGrant(granted)) expect(granted.slots).toEqual([2])
      await slot.close()
      const holders = [stays, ...(released === 'released' ? [] : [leaves]), ...(isGrant(granted) ? [further] : [])]
      const slots: number[] = []
      for (const holder of holders) {
        const grant = await store.renew(holder, signal)
        expect({ name, grant }).toMatchObject({ grant: { held: true } })
        slots.push(...(grant?.slots ?? []))
      }
      expect(await slotsOf(name)).toEqual(slots.sort((one, other) => one - other))
      expect(new Set(slots).size).toBe(holders.length)
      for (const holder of holders) expect(await store.release(holder, signal)).toBe('released')
    }
  })
})

test('a lock with a waiter is renewed and released wherever its keys are, and granted to nobody before the waiter', async () => {
  for (const moved of divisions) {
    const name = nameOf(moved)
    const [holder, waiter] = [claimOf(name), claimOf(name, { queue: true })]
    await hold(store, holder)
    await acquire(store, waiter)
    await using slot = await openSlot()
    await slot.move(name, moved)
    expect(await store.renew(holder, signal)).toMatchObject({ held: true })
    expect(await store.annotate(holder, signal)).toBe(true)
    expect(await store.acquire(holder, signal)).toMatchObject({ held: true })
    expect(await store.acquire(waiter, signal)).toMatchObject({ held: false })
    expect(await store.acquire(claimOf(name), signal)).toMatchObject({ held: false })
    expect(await store.release(holder, signal)).toBe('released')
    expect(isGrant(await answerOf(store.acquire(claimOf(name), signal)))).toBe(false)
    await slot.close()
    await hold(store, waiter)
  }
})

test('a waiter that leaves while the slot moves does not stay in the line', async () => {
  for (const moved of divisions) {
    const name = nameOf(moved)
    const [holder, first, second] = [claimOf(name), claimOf(name, { queue: true }), claimOf(name, { queue: true })]
    await hold(store, holder)
    await acquire(store, first)
    await acquire(store, second)
    await using slot = await openSlot()
    await slot.move(name, moved)
    const left = await answerOf(store.release(first, signal))
    expect(left).toBeOneOf(['released', 'unavailable'])
    await slot.close()
    if (left === 'unavailable') expect(await store.release(first, signal)).toBe('released')
    expect(await store.release(holder, signal)).toBe('released')
    await hold(store, second)
  }
})

test.each([
  ['the name is not known', []],
  ['the lease has moved', ['']],
  ['the lease has not moved', [':gone']],
])('a claim that was withdrawn before the slot moved is refused: %s', async (_, moved) => {
  const [withdrawn, before] = [claimOf('a'), claimOf('a')]
  if (moved.length > 0) {
    await hold(store, before)
    await store.release(before, signal)
  }
  expect(await store.release(withdrawn, signal)).toBe('gone')
  await using slot = await openSlot()
  await slot.move(
    'a',
    moved.map(kind => (kind === ':gone' ? `:gone:${withdrawn.id}` : kind)),
  )
  expect(await store.acquire(withdrawn, signal)).toMatchObject({ held: false })
  expect(await look(store, { name: 'a' })).toEqual([])
  await hold(store, claimOf('a'))
})

test('a request that must wait for the slot says so', async () => {
  for (let permits = 2; permits > 0; permits--) await hold(store, permitOf('a'))
  await using slot = await openSlot()
  await slot.move('a', [''])
  const error = await failureOf(store.acquire(permitOf('a'), signal))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(error.message).toMatch('the Redis Cluster moves the slot of the lease (TRYAGAIN')
})

// A rejection that nobody handles would fail these tests.
describe.each(Object.entries(clients))('%s', (_, create) => {
  test('a new node that hangs while the slot moves to it fails only the requests for its keys', async () => {
    const store = storeOf(create(), PREFIX)
    const [stays, leaves] = [claimOf('stays'), claimOf('leaves')]
    await hold(store, stays)
    await hold(store, leaves)
    await using slot = await openSlot()
    await slot.move('leaves', [''])
    const node = await nodeWith('leaves')
    for (const each of cluster.nodes) await each.call('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')
    const ttl = 3_000
    const renew = (claim: Claim): Promise<unknown> =>
      request(systemClock(), requestLimit(ttl), signal => store.renew({ ...claim, ttl }, signal))
    await node.pause()
    try {
      // As a heartbeat it asks again: on a busy machine a request may take too long.
      await until('the lease on the old node is renewed', async () => {
        const [renewed, lost] = await Promise.allSettled([renew(stays), renew(leaves)])
        expect(lost).toMatchObject({ reason: { code: 'OUTCOME_UNKNOWN' } })
        return renewed.status === 'fulfilled' && isGrant(renewed.value)
      })
    } finally {
      await store[Symbol.asyncDispose]()
      node.resume()
      await cluster.agreed()
    }
  })

  test('no lease is lost, and no outcome unknown, while the first slot moves to a node without slots', async () => {
    const node = cluster.nodes[3] ?? (await cluster.add())
    await using store = storeOf(create(), PREFIX)
    const claims = [claimOf('a'), claimOf('b')]
    for (const claim of claims) await hold(store, claim)
    await using _slot = await openSlot(node)
    for (let index = 0; index < 20; index++) {
      const [renewed, free] = await Promise.all([
        Promise.all(claims.map(claim => store.renew(claim, signal))),
        answerOf(store.acquire(claimOf(`free ${index}`), signal)),
      ])
      expect(renewed).toMatchObject([{ held: true }, { held: true }])
      expect(free).toSatisfy(answer => answer === 'unavailable' || isGrant(answer))
    }
  })
})

async function nodeWith(name: string): Promise<RedisServer> {
  for (const node of cluster.nodes) {
    const found = (await node.call('CLUSTER', 'GETKEYSINSLOT', slotOf(PREFIX), 1_000)) as string[]
    if (found.includes(keys.lease(name))) return node
  }
  throw new Error(`no node has ${name}`)
}

function nameOf(moved: readonly string[]): string {
  return `moved: ${moved.map(kind => kind || 'lease').join(' ')}`
}

function permitOf(name: string): Claim {
  return claimOf(name, { limit: 3 })
}

/** The slots in use of a name, as they are listed. */
async function slotsOf(name: string): Promise<number[]> {
  const found = await look(store, { name })
  return found.flatMap(({ state, slots = [] }) => (state === 'held' ? slots : []))
}

function isGrant(answer: unknown): answer is Grant {
  return (answer as Grant | undefined)?.held === true
}

/** What a request answers, or that it was refused for now. */
async function answerOf(request: Promise<unknown>): Promise<unknown> {
  try {
    return await request
  } catch (error) {
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    return 'unavailable'
  }
}

interface OpenSlot extends AsyncDisposable {
  /** Moves that many keys. */
  moveSome(count: number): Promise<void>
  /** Moves these keys of a name. */
  move(name: string, kinds: readonly string[]): Promise<void>
  /** Moves the other keys, and ends it. */
  close(): Promise<void>
}

/** Opens the slot of the prefix, as a migration does. */
async function openSlot(target?: RedisServer): Promise<OpenSlot> {
  const slot = slotOf(PREFIX)
  const from = await cluster.nodeOf(PREFIX)
  const to = target ?? (cluster.nodes.find(node => node !== from) as RedisServer)
  await cluster.heard(to, from)
  const [left, right] = [await from.call('CLUSTER', 'MYID'), await to.call('CLUSTER', 'MYID')]
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(left))
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(right))
  const migrate = async (each: string): Promise<void> => {
    await from.call('MIGRATE', host, to.port, each, 0, 5_000)
  }
  const moveSome = async (count: number): Promise<void> => {
    for (const each of (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[]) await migrate(each)
  }
  const end = async (owner: unknown): Promise<void> => {
    for (const node of [to, from, ...cluster.nodes]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(owner))
  }
  let isClosed = false
  return {
    moveSome,
    async move(name, kinds) {
      for (const kind of kinds) await migrate(keys.lease(name) + kind)
    },
    async close() {
      await moveSome(1_000)
      await end(right)
      isClosed = true
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return
      for (const node of cluster.nodes) await node.call('FLUSHALL')
      await end(left)
    },
  }
}
