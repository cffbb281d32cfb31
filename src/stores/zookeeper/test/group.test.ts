import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Claim } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { createLocks } from '../../../index.ts'
import { Disconnected } from '../failure.ts'
import { Group } from '../group.ts'
import { newNode } from '../nodes.ts'
import { create } from '../protocol.ts'
import type { Settings } from '../settings.ts'
import { ZooKeeperStore } from '../store.ts'
import { claimOf, connectionTo, hold, nodesOf, settingsWith, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

/** A group that only wakes waiters. */
function groupThat(wakes: (id: string) => void, settings = settingsWith(server, systemClock()), ttl = 10_000): Group {
  return new Group(settings, ttl, { wake: wakes, lose: () => {}, hold: () => {} })
}

/** Settings with a clock that can be made to step forward, as after a sleep of the machine. */
function sleeping(): { settings: Settings; sleep(ms: number): void } {
  const clock = systemClock()
  let slept = 0
  return {
    settings: settingsWith(server, { ...clock, now: () => clock.now() + slept }),
    sleep(ms) {
      slept += ms
    },
  }
}

test('a lease that ends by a step of the wall clock is reported before another can hold the name', async () => {
  const { settings, sleep } = sleeping()
  const store = new ZooKeeperStore(settings, 0)
  await using locks = createLocks(storeOf(server), { ttl: 2_000 })
  const claim = claimOf('stepped', { ttl: 2_000 })
  await hold(store, claim)
  let isTold = false
  store.onLoss(claim, () => {
    isTold = true
  })
  const next = locks.using('stepped', async () => isTold)
  await hold(store, claimOf('other', { ttl: 2_000 }))
  expect(isTold).toBe(false)
  sleep(3_000)
  await hold(store, claimOf('another', { ttl: 2_000 }))
  expect(await next).toBe(true)
  await store[Symbol.asyncDispose]()
})

test('a lease is reported as lost as soon as any request finds that its session is over', async () => {
  await using server = await startZooKeeper()
  await using store = storeOf(server)
  const claim = claimOf('ended', { ttl: 2_000 })
  await hold(store, claim)
  const lost = new Promise<void>(resolve => store.onLoss?.(claim, resolve))
  await server.kill()
  rmSync(join(server.folder, 'data', 'version-2'), { recursive: true })
  await server.start()
  const other = claimOf('other', { ttl: 2_000 })
  await until('another is granted', () => store.acquire(other, signal).catch(() => undefined))
  await lost
})

test('when a node is deleted, only current waiters are woken', async () => {
  await using others = storeOf(server)
  const holder = claimOf('held')
  await hold(others, holder)
  const told: string[] = []
  const group = groupThat(id => told.push(id))
  const connection = await group.connection(0)
  const claims = [claimOf('held'), claimOf('held')] as const
  const [gone, waits] = claims
  for (const claim of claims) {
    const { position, queue } = await group.put(connection, claim, 'w')
    expect(await group.arm(connection, 'held', queue.holders[0]?.name ?? '', claim.id, 0)).toBe(true)
    if (claim === gone) group.positions.forget(position)
  }
  await others.release(holder, signal)
  await until('they are told', () => told.length > 0)
  expect(told).toEqual([waits.id])
  await group.close()
})

test('a waiter that watches all holders is told of a change before the watch of another waiter', async () => {
  await using others = storeOf(server)
  const permits = [1, 2].map(() => claimOf('all', { limit: 3 })) as [Claim, Claim]
  for (const permit of permits) await hold(others, permit)
  const told: string[] = []
  const group = groupThat(id => told.push(id))
  const connection = await group.connection(0)
  const before = (await group.put(connection, claimOf('all', { limit: 3 }), 'w')).queue
  await others.release(permits[0], signal)
  const after = (await group.put(connection, claimOf('all', { limit: 3 }), 'w')).queue
  expect(await group.armAll(connection, 'all', after, 'late', 0)).toBe(true)
  expect(await group.armAll(connection, 'all', before, 'early', 0)).toBe(false)
  expect(told).toContain('early')
  await group.close()
})

test('a watched waiter behind one that begins to hold is not woken, and its process knows that the name is held', async () => {
  await using others = storeOf(server)
  const [holder, next] = [claimOf('followed'), claimOf('followed', { queue: true })]
  await hold(others, holder)
  await others.acquire(next, signal)
  const [woken, held] = [[] as string[], [] as string[]]
  const listener = {
    wake: (id: string) => woken.push(id),
    lose: () => {},
    hold: (name: string) => held.push(name),
  }
  const group = new Group(settingsWith(server, systemClock()), 10_000, listener)
  const connection = await group.connection(0)
  const claim = claimOf('followed')
  const { position, queue } = await group.put(connection, claim, 'w')
  position.behind = queue.nodes[1]
  position.watch = signal
  expect(position.behind?.id).toBe(next.id)
  expect(await group.arm(connection, 'followed', position.behind?.name ?? '', claim.id, 0)).toBe(true)
  await others.release(holder, signal)
  await hold(others, next)
  await until('it is followed', () => held.length > 0)
  expect([woken, held]).toEqual([[], ['followed']])
  await others.release(next, signal)
  await until('it is woken', () => woken.length > 0)
  await group.close()
})

test('a waiter that is not watched does not keep its session when the waiter before it leaves', async () => {
  await using others = storeOf(server)
  const [holder, next] = [claimOf('left'), claimOf('left', { queue: true })]
  await hold(others, holder)
  await others.acquire(next, signal)
  const woken: string[] = []
  const listener = { wake: (id: string) => woken.push(id), lose: () => {}, hold: () => {} }
  const group = new Group(settingsWith(server, systemClock()), 10_000, listener)
  const connection = await group.connection(0)
  const claim = claimOf('left')
  const { position, queue } = await group.put(connection, claim, 'w')
  position.behind = queue.nodes[1]
  await group.arm(connection, 'left', position.behind?.name ?? '', claim.id, 0)
  const send = vi.spyOn(connection, 'send')
  await others.release(next, signal)
  await until('it is woken', () => woken.length > 0)
  expect(send).not.toHaveBeenCalled()
  await group.close()
})

test('a claim that joins the queue again has nothing of its earlier node', async () => {
  const woken: string[] = []
  const listener = { wake: (id: string) => woken.push(id), lose: () => {}, hold: () => {} }
  const group = new Group(settingsWith(server, systemClock()), 10_000, listener)
  const connection = await group.connection(0)
  const [holder, claim] = [claimOf('again'), claimOf('again')]
  const { position: ahead } = await group.put(connection, holder, 'c')
  const { position } = await group.put(connection, claim, 'w')
  await group.arm(connection, 'again', ahead.node?.name ?? '', claim.id, 0)
  position.token = 1n
  const putting = group.put(connection, claim, 'w')
  // Also before the answer, which may be lost.
  expect(position).toMatchObject({ node: undefined, token: undefined })
  const { position: again } = await putting
  expect(again).toBe(position)
  expect(again).toMatchObject({ token: undefined, node: { kind: 'w', sequence: 2 } })
  await group.delete(
    connection,
    'again',
    [ahead.node].filter(node => node !== undefined),
  )
  await group.queues.lookAtNewest(connection, 'again')
  expect(woken).toEqual([])
  await group.close()
})

test.each([
  ['', 8_000],
  [', and the connection was lost', 60_000],
])('the nodes of a claim that does not ask any more are deleted, also if they are unknown%s', async (_, time) => {
  const { settings, sleep } = sleeping()
  const group = groupThat(() => {}, settings, 20_000)
  const connection = await group.connection(0)
  const claim = claimOf(`unknown${time}`, { queue: true, ttl: 1_000 })
  await group.put(connection, claim, 'w')
  const { position } = await group.put(connection, claim, 'w')
  const other = await connectionTo(server)
  const node = `/holdfast/${claim.name}/${newNode('w', claim, 0)}`
  const { path } = await other.send(create(node, '', settings.acl, 'ephemeral sequential'))
  expect(await nodesOf(server, claim.name)).toHaveLength(3)
  position.node = undefined
  sleep(time)
  await until('its position is gone', async () => {
    sleep(1_500) // a sweep each sixteenth of the session
    await group.connection(0)
    return group.positions.get(claim.id) === undefined
  })
  expect(await nodesOf(server, claim.name)).toEqual([path.slice(path.lastIndexOf('/') + 1)]) // of another session
  other.end(new Disconnected('over'))
  await group.close()
})

test('a lease that was not renewed is reported as lost once, however many sweeps its node takes', async () => {
  const { settings, sleep } = sleeping()
  const store = new ZooKeeperStore(settings, 20_000)
  const claim = claimOf('swept', { ttl: 2_000 })
  await hold(store, claim)
  let losses = 0
  store.onLoss(claim, () => {
    losses += 1
  })
  sleep(3_000)
  const asking: Promise<unknown>[] = []
  for (let sweeps = 0; sweeps < 4; sweeps += 1) {
    sleep(1_300) // a sweep each sixteenth of the session
    asking.push(store.acquire(claimOf('other', { ttl: 2_000 }), signal))
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve() // sent, not answered
  }
  await Promise.all(asking)
  expect(losses).toBe(1)
  expect(await nodesOf(server, claim.name)).toEqual([])
  await store[Symbol.asyncDispose]()
})

test('a waiter whose node was deleted after a step of the wall clock is woken', async () => {
  const { settings, sleep } = sleeping()
  const woken: string[] = []
  const group = groupThat(id => woken.push(id), settings, 20_000)
  const connection = await group.connection(0)
  const [waiting, gone] = [claimOf('stepped on', { ttl: 1_000 }), claimOf('stepped on', { ttl: 1_000 })]
  for (const claim of [waiting, gone]) {
    const { position } = await group.put(connection, claim, 'w')
    const controller = new AbortController()
    position.watch = controller.signal
    if (claim === gone) controller.abort()
  }
  sleep(2_000)
  await group.connection(0)
  await until('it is woken', () => woken.length > 0)
  await until('both nodes are gone', async () => (await nodesOf(server, waiting.name)).length === 0)
  expect(woken).toEqual([waiting.id])
  await group.close()
})

test('a waiter does not count the time for which one ahead of it held as the grace periods of the others', async () => {
  const { settings, sleep } = sleeping()
  await using others = storeOf(server)
  await using store = new ZooKeeperStore(settings, 0)
  const waiter = (): Claim => claimOf('overtaken', { queue: true })
  const [holder, first, second, third, last] = [claimOf('overtaken'), waiter(), waiter(), waiter(), waiter()] as const
  await hold(others, holder)
  for (const claim of [first, second, third]) await others.acquire(claim, signal)
  await store.acquire(last, signal)
  await others.release(holder, signal)
  await store.acquire(last, signal) // sees that the name is free
  await hold(others, first)
  sleep(400)
  await others.release(first, signal)
  expect(await store.acquire(last, signal)).toMatchObject({ held: false, ahead: 2 })
  await hold(others, second)
})

test('a waiter that joins or withdraws does not restart the grace periods of others', async () => {
  const clock = systemClock()
  let now = clock.now()
  await using others = storeOf(server)
  await using store = new ZooKeeperStore(settingsWith(server, { ...clock, now: () => now }), 0)
  const waiter = (): Claim => claimOf('graced', { queue: true, roundTrip: 0 })
  const [holder, hung, next, last] = [claimOf('graced'), waiter(), waiter(), waiter()] as const
  await hold(others, holder)
  await others.acquire(hung, signal)
  for (const claim of [next, last]) await store.acquire(claim, signal)
  await others.release(holder, signal)
  expect(await store.acquire(next, signal)).toMatchObject({ held: false })
  now += 100
  expect(await store.acquire(waiter(), signal)).toMatchObject({ held: false })
  expect(await store.release(last, signal)).toBe('released')
  await hold(store, next)
})

test('a claim that asks again while its node is deleted, or was looked for, keeps its position', async () => {
  const { settings, sleep } = sleeping()
  const group = groupThat(() => {}, settings, 20_000)
  const connection = await group.connection(0)
  const claim = claimOf('asked', { queue: true, ttl: 1_000 })
  for (const isKnown of [true, false]) {
    const { position } = await group.put(connection, claim, 'w')
    if (!isKnown) await group.delete(connection, claim.name, position.node ? [position.node] : [])
    if (!isKnown) position.node = undefined
    const looked = Promise.withResolvers<void>()
    const empty = await group.queues.lookAtNewest(connection, claim.name)
    const look = vi.spyOn(group.queues, 'look').mockImplementationOnce(() => looked.promise.then(() => empty))
    sleep(2_000)
    await group.connection(0) // sweeps
    if (isKnown) look.mockRestore()
    const putting = group.put(connection, claim, 'w')
    looked.resolve()
    await putting
    look.mockRestore()
    expect(group.positions.get(claim.id)).toBe(position)
    const { nodes } = await group.queues.lookAtNewest(connection, claim.name)
    expect(nodes.map(({ name }) => name)).toEqual([position.node?.name])
    await group.delete(connection, claim.name, nodes)
  }
  await group.close()
})

test('a claim whose node was unknown has one node after the connection was lost', async () => {
  const settings = settingsWith(server, systemClock())
  const group = groupThat(() => {}, settings, 20_000)
  const connection = await group.connection(0)
  const claim = claimOf('found', { queue: true, ttl: 60_000 })
  const { position } = await group.put(connection, claim, 'w')
  const { node } = position
  await group.put(connection, claim, 'w')
  position.node = undefined
  expect(await group.connection(Number.POSITIVE_INFINITY)).not.toBe(connection) // longer than any session
  expect(position.node).toEqual(node)
  expect(await nodesOf(server, claim.name)).toEqual([node?.name])
  await group.close()
})

test('a session that is attached again lets an operation of several requests end', async () => {
  const listener = { wake: () => {}, lose: () => {}, hold: () => {} }
  const group = new Group(settingsWith(server, systemClock()), 10_000, listener)
  const connection = await group.connection(0)
  const claim = claimOf('several')
  const operation = group
    .put(connection, claim, 'c')
    .then(({ position }) => group.arm(connection, 'several', position.node?.name ?? '', claim.id, 0))
  const attached = group.session.connection(Number.POSITIVE_INFINITY) // longer than any session
  expect(await operation).toBe(true)
  expect(await attached).not.toBe(connection)
  await group.close()
})
