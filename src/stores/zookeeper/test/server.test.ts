import { rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { inTime } from '../../../../lab/conformance/timing.ts'
import { startClock } from '../../../../lab/servers/clock.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { look } from '../../../../test/support.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { createLocks, type Lease } from '../../../index.ts'
import { Connection } from '../connection.ts'
import { Disconnected } from '../failure.ts'
import { getChildren, multi } from '../protocol.ts'
import { claimOf, connectionTo, hold, nodesOf, signal, storeOf, watchesOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

/** The waiters that a second client sees. */
async function waits(store: Store, name: string, count: number): Promise<void> {
  const locks = createLocks(store)
  await until(`${count} wait`, async () => (await locks.inspect(name)).waiters.length === count)
}

test('a lease and a queue survive a restart of the server', async () => {
  await using locks = createLocks(storeOf(server), { ttl: 10_000 })
  await using other = storeOf(server)
  const lease = await locks.acquire('restart')
  const waiting = locks.acquire('restart')
  await waits(other, 'restart', 1)
  await server.restart()
  await until('it is renewed', () => lease.extend().catch(() => undefined))
  await waits(other, 'restart', 1)
  await lease.release()
  const next = await waiting
  expect(next.token).toBeGreaterThan(lease.token)
  await next.release()
})

test('a server that lost all its data serves existing clients once their sessions are over, and tokens fall', async () => {
  await using server = await startZooKeeper()
  await using locks = createLocks(storeOf(server), { ttl: 1_000 })
  const lease = await locks.acquire('wiped')
  let last = 0n
  for (let rounds = 0; rounds < 20; rounds += 1) last = await locks.using('more', async ({ token }) => token)
  await server.kill()
  rmSync(join(server.folder, 'data', 'version-2'), { recursive: true })
  await server.start()
  await until('it serves', () => locks.using('wiped', async () => true).catch(() => false))
  expect(await locks.using('more', async ({ token }) => token)).toBeLessThan(last)
  expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
})

test('a lease that moves to the session of another client, or of another ttl, keeps its token and its position', async () => {
  await using one = storeOf(server)
  await using two = storeOf(server)
  const claim = claimOf('moves')
  const { token } = await hold(one, claim)
  const waiting = claimOf('moves', { queue: true })
  expect((await one.acquire(waiting, signal)).held).toBe(false)
  for (const [store, ttl] of [
    [two, 10_000],
    [one, 10_000],
    [one, 60_000],
    [two, 4_000],
    [one, 10_000],
  ] as const) {
    const grant = await store.renew({ ...claim, ttl }, signal)
    expect(grant?.token).toBe(token)
    expect(await nodesOf(server, 'moves')).toHaveLength(2)
    const [holder, waiter] = await look(two, { name: 'moves' })
    expect([holder?.token, waiter?.position]).toEqual([token, 0])
  }
  // The one that it left must not think that it renews it.
  await two.renew(claim, signal)
  await two.break('moves', { by: 'test' }, signal)
  expect(await one.renew(claim, signal)).toBeUndefined()
})

test('a lease that moved to another session and back lasts with the one that renews it', async () => {
  await using one = storeOf(server)
  await using two = storeOf(server)
  await inTime(TURN, async nth => {
    const claim = claimOf(`back-${nth}`, { ttl: 1_000 })
    const { token } = await hold(one, claim)
    for (const store of [two, one]) expect((await store.renew(claim, signal))?.token).toBe(token)
    const end = performance.now() + 3_500
    while (performance.now() < end) {
      expect((await two.renew(claim, signal))?.token).toBe(token)
      await new Promise(resolve => setTimeout(resolve, 200))
    }
    expect(await nodesOf(server, claim.name)).toHaveLength(1)
  })
})

test('waiters that could not ask while the server was down keep their positions', async () => {
  await using proxy = await startProxy(server)
  await using waiters = storeOf(proxy)
  await using holders = storeOf(server)
  await hold(holders, claimOf('away'))
  const [first, second] = [1, 2].map(() => claimOf('away', { queue: true, ttl: 3_000 })) as [Claim, Claim]
  for (const waiter of [first, second]) expect((await waiters.acquire(waiter, signal)).held).toBe(false)
  proxy.reset()
  await new Promise(resolve => setTimeout(resolve, 3_300)) // longer than a position lasts, shorter than its session
  const answers = await Promise.all([waiters.acquire(second, signal), waiters.acquire(first, signal)])
  expect(answers).toMatchObject([{ ahead: 1 }, { ahead: 0 }])
})

test('a waiter that was skipped does not hold together with the next one', async () => {
  await using one = storeOf(server)
  await using two = storeOf(server)
  const holder = claimOf('passed')
  const [first, second, third] = [1, 2, 3].map(() => claimOf('passed', { queue: true })) as [Claim, Claim, Claim]
  await hold(one, holder)
  for (const waiter of [first, second, third]) expect((await two.acquire(waiter, signal)).held).toBe(false)
  await one.release(holder, signal)
  const { token } = await until('it is its turn', () => hold(two, third).catch(() => undefined))
  for (const late of [first, second]) {
    expect(await one.acquire(late, signal)).toMatchObject({ held: false, holder: { token } })
    expect(await two.acquire(late, signal)).toMatchObject({ held: false, holder: { token } })
  }
  expect((await two.renew(third, signal))?.token).toBe(token)
  await two.release(third, signal)
  expect((await hold(two, first)).token).toBeGreaterThan(token)
})

test('a waiter that hangs behind a short lease delays the next one by its grace period', async () => {
  await using held = storeOf(server)
  await using hung = storeOf(server)
  await using locks = createLocks(storeOf(server))
  await using others = createLocks(storeOf(server))
  await inTime(TURN, async nth => {
    const name = `hangs ${nth}`
    const holder = claimOf(name)
    await hold(held, holder)
    const next = locks.acquire(name)
    const waiting = (count: number): Promise<unknown> =>
      until(`${count} wait`, async () => (await others.inspect(name)).waiters.length === count)
    await waiting(1)
    await hung.acquire(claimOf(name, { queue: true }), signal)
    const last = others.acquire(name)
    await waiting(3)
    await held.release(holder, signal)
    await (await next).release() // before the last one asks again
    const released = performance.now()
    await (await last).release()
    expect(performance.now() - released).toBeLessThan(10 * TURN)
  })
})

test('the monotonic clock of the server ends leases, and holders are notified; its wall clock decides nothing', async () => {
  using clock = startClock()
  await using shifted = await startZooKeeper({ clock })
  await using locks = createLocks(storeOf(shifted), { ttl: 3_000 })
  await using rival = storeOf(shifted)
  const lease = await locks.acquire('clock')
  for (const jump of [3_600_000, -7_200_000, 3_600_000]) {
    clock.jumpWall(jump)
    await lease.extend()
  }
  clock.jumpMonotonic(60_000)
  const next = claimOf('clock')
  const { token } = await until('it is passed on', () => hold(rival, next).catch(() => undefined))
  expect(token).toBeGreaterThan(lease.token)
  await until('the holder is told', () => lease.signal.aborted)
  expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  const again = locks.acquire('clock')
  await rival.release(next, signal)
  await (await again).release()
})

test('a claim that is not renewed ends, although others keep the session alive', async () => {
  const ttl = 3_000
  await using locks = createLocks(storeOf(server), { ttl })
  await using rival = createLocks(storeOf(server), { ttl })
  const kept = await locks.acquire('kept')
  const sent = performance.now()
  const forgotten = await locks.acquire('forgotten', { heartbeat: false })
  const next = await rival.acquire('forgotten', { wait: 15_000 })
  expect(() => forgotten.assertHeld()).toThrow('its term ended')
  expect(performance.now() - sent).toBeLessThan(3 * ttl)
  kept.assertHeld()
  await Promise.all([kept.release(), next.release()])
})

test('a lease that is acquired when its session was idle for a while lasts a whole ttl', async () => {
  await using store = storeOf(server)
  for (const pause of [0, 1_400, 2_400, 5_000]) {
    await new Promise(resolve => setTimeout(resolve, pause))
    const claim = claimOf('idle', { ttl: 2_000 })
    expect((await hold(store, claim)).ttl).toBe(2_000)
    await store.release(claim, signal)
  }
})

test('a closed store keeps leases until their ttl ends, and leaves nothing else', async () => {
  const store = storeOf(server)
  const [held, waiting] = [claimOf('closed', { ttl: 2_000 }), claimOf('closed-2', { ttl: 20_000 })]
  await hold(store, held)
  await using other = storeOf(server)
  await hold(other, claimOf('closed-2'))
  await store.acquire({ ...waiting, queue: true }, signal)
  await store[Symbol.asyncDispose]()
  expect(await nodesOf(server, 'closed')).toHaveLength(1)
  expect(await nodesOf(server, 'closed-2')).toHaveLength(1)
  await until('it runs out', async () => (await nodesOf(server, 'closed')).length === 0)
})

test('a store that is closed while a lease is moved to another session keeps it', async () => {
  const store = storeOf(server)
  const claim = claimOf('moved', { ttl: 2_000 })
  const { token } = await hold(store, claim)
  const isMoving = Promise.withResolvers<void>()
  const { send } = Connection.prototype
  const spy = vi.spyOn(Connection.prototype, 'send').mockImplementation(function (this: Connection, request) {
    if (request.op === multi([]).op) isMoving.resolve()
    return send.call(this, request)
  })
  const renewed = store.renew({ ...claim, ttl: 20_000, token }, signal)
  await isMoving.promise
  spy.mockRestore()
  await Promise.all([expect(renewed).rejects.toMatchObject({ code: 'CLOSED' }), store[Symbol.asyncDispose]()])
  expect(await nodesOf(server, 'moved')).toHaveLength(1)
})

test('a release wakes two of a hundred waiters, and no more', async () => {
  await using proxy = await startProxy(server)
  await using holders = storeOf(server)
  await using waiters = createLocks(storeOf(proxy), { ttl: 30_000 })
  const holder = claimOf('herd')
  await hold(holders, holder)
  const controller = new AbortController()
  const served: Lease[] = []
  const waits = Array.from({ length: 100 }, async () => {
    const lease = await waiters.acquire('herd', { signal: controller.signal })
    served.push(lease)
  })
  await until('all wait', async () => (await nodesOf(server, 'herd')).length === 101)
  let before = -1
  await until('it is quiet for a while', async () => {
    before = proxy.up.bytes
    await new Promise(resolve => setTimeout(resolve, 300))
    return proxy.up.bytes === before
  })
  await holders.release(holder, signal)
  await until('the first holds', () => served.length === 1)
  await new Promise(resolve => setTimeout(resolve, 300))
  // Each request of a waiter is 300 bytes or more: the first waiter asks and holds, the second asks and watches again.
  expect(proxy.up.bytes - before).toBeLessThan(2_500)
  const all = Promise.allSettled(waits)
  controller.abort()
  await all
  await served[0]?.release()
})

test('nothing remains of an unused name, and its tokens still rise', async () => {
  const properties = { 'znode.container.checkIntervalMs': 50, 'znode.container.maxPerMinute': 100_000 }
  await using server = await startZooKeeper({ properties })
  await using locks = createLocks(storeOf(server))
  await using others = createLocks(storeOf(server))
  const connection = await connectionTo(server)
  const names = async (): Promise<string[]> => (await connection.send(getChildren('/holdfast'))).children
  let latest = 0n
  for (let round = 0; round < 5; round += 1) {
    for (const each of [locks, others, locks]) {
      await using lease = await each.acquire('gone')
      expect(lease.token).toBeGreaterThan(latest)
      latest = lease.token
    }
    await until('its node is gone', async () => (await names()).length === 0)
  }
  connection.end(new Disconnected('it is done'))
})

test('a name that is handed over leaves no watches at the server', async () => {
  await using server = await startZooKeeper()
  const all = [1, 2].map(() => createLocks(storeOf(server)))
  let left = 300
  const work = [...all, ...all].map(async locks => {
    while (left-- > 0) await locks.using('hot', async () => {})
  })
  await Promise.all(work)
  expect(await watchesOf(server)).toBe(0)
  await Promise.all(all.map(locks => locks.close()))
})

test('a heartbeat in a thread renews while the event loop is blocked', async () => {
  const program = `
    import { connect } from '${ROOT}/src/index.ts'
    const locks = await connect('zookeeper://127.0.0.1:${server.port}', { ttl: 3_000, heartbeat: 'thread' })
    const lease = await locks.acquire('thread', { maxBlocked: 10_000 })
    const end = performance.now() + 5_000
    while (performance.now() < end);
    lease.assertHeld()
    await lease.release()
    console.log('released')`
  const { code, stdout, stderr } = await scriptNode(['--input-type=module', '--eval', program], { folder: ROOT })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'released\n', stderr: '' })
  expect(await nodesOf(server, 'thread')).toEqual([])
})

test('a program that waits ends when it was served, although it never closes its locks', async () => {
  await using store = storeOf(server)
  await hold(store, claimOf('waited', { ttl: 2_000 }))
  const program = `
    import { connect } from '${ROOT}/src/index.ts'
    const locks = await connect('zookeeper://127.0.0.1:${server.port}')
    const lease = await locks.acquire('waited')
    await lease.release()
    console.log('held')`
  const { code, stdout, stderr } = await scriptNode(['--input-type=module', '--eval', program], { folder: ROOT })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'held\n', stderr: '' })
})

test('a claim waits, also if to connect takes longer than an eighth of a session', async () => {
  const slow = createServer(client => {
    client.on('error', () => {})
    const pass = (): void => {
      const upstream = connect(server.port, server.host)
      upstream.on('error', () => client.destroy())
      client.pipe(upstream).pipe(client)
    }
    setTimeout(pass, 800)
  })
  await new Promise<void>(resolve => slow.listen(0, '127.0.0.1', resolve))
  const { port } = slow.address() as AddressInfo
  await using near = storeOf(server)
  await hold(near, claimOf('far'))
  {
    await using store = storeOf({ port })
    const waiter = claimOf('far', { queue: true })
    await until('it waits', async () => (await store.acquire(waiter, signal).catch(() => undefined))?.held === false)
  }
  slow.close()
})
