import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { inTime, TooSlow } from '../../../../lab/conformance/timing.ts'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Busy, Claim, Grant, Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { createLocks } from '../../../create-locks.ts'
import { type HttpRelay, startRelay } from './relay.ts'
import { base64, claimOf, hold, look, read, signal, storeOf } from './support.ts'

let server: EtcdServer
let proxy: TcpProxy
let relay: HttpRelay
let other: Store

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

beforeEach(async () => {
  ;[proxy, relay] = [await startProxy(server), await startRelay(server)]
  other = storeOf([server])
})
afterEach(async () => {
  await other[Symbol.asyncDispose]()
  await relay[Symbol.asyncDispose]()
  await proxy.stop()
})

let count = 0
const name = (): string => `name ${count++}`

/** Counts, and notifies of changes. */
async function watched(store: Store, claim: Claim): Promise<{ readonly wakes: number; stop(): void }> {
  const controller = new AbortController()
  const watch = { wakes: 0, stop: () => controller.abort() }
  const wake = (): void => {
    watch.wakes += 1
  }
  await store.watch?.(claim, wake, controller.signal)
  return watch
}

async function compact(): Promise<void> {
  const { header } = await read(server, 'nothing')
  await server.call('kv/compaction', { revision: header.revision, physical: true })
}

test('a waiter is woken although the revisions of its watch were compacted', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name())
  await hold(other, holder)
  const held = relay.holdBack(/v3\/watch/)
  const waiter = claimOf(holder.name, { queue: true })
  await store.acquire(waiter, signal)
  const watching = watched(store, waiter)
  const pass = await held
  await other.release(holder, signal) // between reading the queue and the watch
  await server.call('kv/put', { key: base64('something') })
  await compact()
  pass()
  const watch = await watching.catch(() => watched(store, waiter))
  await until('it is woken', () => watch.wakes > 0)
  expect((await store.acquire(waiter, signal)).held).toBe(true)
  watch.stop()
})

test('a waiter whose watch is 1,000 revisions behind does not take the name from a holder that it has not heard of', async () => {
  await using store = storeOf([relay])
  const [holder, next] = [claimOf(name(), { ttl: 60_000 }), claimOf('', { queue: true, ttl: 60_000 })]
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true, ttl: 60_000 })
  const held = relay.holdBack(/v3\/watch/)
  await store.acquire(waiter, signal)
  const asked = Promise.withResolvers<Grant | Busy>()
  const controller = new AbortController()
  const watching = store.watch?.(waiter, () => asked.resolve(store.acquire(waiter, signal)), controller.signal)
  const pass = await held
  // The release is the 1,000th revision, with which the first part of the events ends.
  const key = base64(`holdfast\t${holder.name}\theld\t${holder.id}`)
  const write = (): Promise<unknown> => server.call('kv/put', { key, ignore_value: true, ignore_lease: true })
  for (let count = 0; count < 27; count += 1) await Promise.all(Array.from({ length: 37 }, write))
  await other.release(holder, signal)
  await until('another overtakes', async () => (await other.acquire({ ...next, name: holder.name }, signal)).held)
  pass()
  await watching
  expect(await asked.promise).toMatchObject({ held: false })
  controller.abort()
})

test('compaction does not disturb a running watch', async () => {
  const locks = createLocks(other)
  const holder = claimOf(name())
  await hold(other, holder)
  const waiting = locks.acquire(holder.name)
  await until('it waits', async () => (await look(other, { name: holder.name })).length === 2)
  await compact()
  await other.release(holder, signal)
  await (await waiting).release()
})

test('events missed while the connection was cut are read again, also after compaction', async () => {
  await using store = storeOf([proxy])
  const holder = claimOf(name())
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true })
  await store.acquire(waiter, signal)
  const watch = await watched(store, waiter)
  await proxy.refuse()
  proxy.reset()
  await other.release(holder, signal)
  await server.call('kv/put', { key: base64('something') })
  await compact()
  await proxy.accept()
  await until('it is woken', () => watch.wakes > 0)
  watch.stop()
})

test('a watch that silently stops delays waiters but does not block them for ever', async () => {
  await using store = storeOf([proxy])
  const locks = createLocks(store, { ttl: 3_000 })
  const holder = claimOf(name())
  await hold(other, holder)
  const waiting = locks.acquire(holder.name)
  await until('it waits', async () => (await look(other, { name: holder.name })).length === 2)
  for (const pipe of proxy.down.pipes) pipe.deafen() // those that are open now
  await other.release(holder, signal)
  await (await waiting).release()
})

test('refused watches are retried with increasing pauses, and waiters are still served', async () => {
  await using store = storeOf([relay])
  const locks = createLocks(store)
  const holder = claimOf(name())
  await hold(other, holder)
  for (let count = 0; count < 500; count += 1) relay.answer(/v3\/watch/, 502, 'Bad Gateway')
  const waiting = Array.from({ length: 10 }, () => locks.using(holder.name, async () => true))
  await until('all wait', async () => (await look(other, { name: holder.name })).length === 11)
  await sleep(3_000)
  expect(relay.requests.filter(request => request.includes('/watch')).length).toBeLessThan(15)
  await other.release(holder, signal)
  await Promise.all(waiting)
})

test('a handoff among many waiters costs few requests, and the other waiters write nothing', async () => {
  await using store = storeOf([relay])
  const locks = createLocks(store, { ttl: 120_000 }) // waiters renew their positions only after 40 s
  const holder = claimOf(name(), { ttl: 120_000 })
  await hold(other, holder)
  let served = 0
  const waits = Array.from({ length: 200 }, async () => {
    await locks.using(holder.name, async () => {
      served += 1
    })
  })
  await until('all wait', async () => (await look(other, { name: holder.name })).length === 201)
  await sleep(500) // their watch is there
  relay.requests.length = 0
  await other.release(holder, signal)
  await Promise.all(waits)
  expect(served).toBe(200)
  expect(relay.requests.length).toBeLessThan(4 * 200) // take, keepalive, release: and some that asked meanwhile
  expect(relay.requests.filter(request => request.includes('/watch')).length).toBeLessThan(3)
  const takes = relay.requests.filter(request => request.includes('request_delete_range'))
  expect(takes.length).toBeGreaterThanOrEqual(200)
  const queue = `"${base64(`holdfast\t${holder.name}\tqueue\t`)}"`
  const compares = takes.map(request => request.slice(0, request.indexOf('"success"')))
  expect(compares.filter(compare => compare.includes(queue))).toEqual([]) // etcd would read the whole queue for each
  expect(await look(other, { name: holder.name })).toEqual([])
}, 60_000)

test('each name has its own queue: that of a does not contain that of a/b', async () => {
  const a = name()
  const names = [a, `${a}/b`, `${a}/queue`, `${a}/held`]
  for (const each of names) {
    await hold(other, claimOf(each))
    await other.acquire(claimOf(each, { queue: true, owner: each }), signal)
  }
  for (const each of names) {
    const records = await look(other, { name: each })
    expect(records.map(record => [record.name, record.state])).toEqual([
      [each, 'held'],
      [each, 'waiting'],
    ])
  }
  expect(await look(other, { prefix: `${a}/` })).toHaveLength(6)
})

test('a page of the listing ends between two names, however long their queues are', async () => {
  const a = name()
  const holders = Array.from({ length: 30 }, (_, index) => claimOf(`${a}/${index}`, { ttl: 60_000 }))
  await Promise.all(holders.map(holder => hold(other, holder)))
  const waiters = holders.flatMap(({ name: each }) =>
    Array.from({ length: 40 }, (_, index) => claimOf(each, { queue: true, ttl: 60_000, owner: String(index) })),
  )
  const controller = new AbortController()
  for (let index = 0; index < 40; index += 1) {
    const some = holders.map((_, k) => waiters[40 * k + index] as Claim)
    await Promise.all(some.map(claim => other.acquire(claim, signal)))
    await Promise.all(some.map(async claim => other.watch?.(claim, () => {}, controller.signal))) // keeps its position
  }
  const records = await look(other, { prefix: `${a}/` })
  expect(records).toHaveLength(30 * 41)
  const expected = holders
    .map(({ name: each }) => each)
    .sort()
    .flatMap(each => [[each, 'test', undefined], ...Array.from({ length: 40 }, (_, k) => [each, String(k), k])])
  expect(records.map(record => [record.name, record.owner, record.position])).toEqual(expected)
  controller.abort()
}, 60_000)

test('a later waiter in another process sends no request when the name goes to an earlier one', async () => {
  await inTime(TURN, async () => {
    await using store = storeOf([relay])
    const [locks, behind] = [createLocks(other, { ttl: 30_000 }), createLocks(store, { ttl: 30_000 })]
    const holder = await locks.acquire(name())
    const waiting = async (): Promise<number> => (await look(other, { name: holder.name })).length - 1
    const first = locks.acquire(holder.name)
    await until('one waits', async () => (await waiting()) === 1)
    const second = behind.acquire(holder.name)
    await until('two wait', async () => (await waiting()) === 2)
    await until('it listens', () => relay.requests.some(request => request.includes('/watch')))
    await sleep(1_000)
    relay.requests.length = 0
    const released = performance.now()
    await holder.release()
    const lease = await first
    const took = performance.now() - released
    await sleep(3 * TURN)
    // These keep its position. Once its turn has come, it asks.
    const asked = relay.requests.filter(each => !/keepalive|lease\/grant|"success":\[\{"request_range"/.test(each))
    await lease.release()
    await (await second).release()
    if (took >= TURN) throw new TooSlow('the turn of the second came')
    expect(asked).toEqual([])
  })
})

test('no waiter overtakes because the name was free when it came', async () => {
  await using store = storeOf([server])
  const each = name()
  const [holder, first, second, third] = Array.from({ length: 4 }, () => claimOf(each, { queue: true })) as [
    Claim,
    Claim,
    Claim,
    Claim,
  ]
  await hold(other, holder)
  for (const waiter of [first, second]) await other.acquire(waiter, signal)
  await other.release(holder, signal)
  expect(await store.acquire(third, signal)).toMatchObject({ held: false, ahead: 2 }) // the name is free
  const watch = await watched(store, third)
  await until('the first has it', async () => (await other.acquire(first, signal)).held)
  await sleep(3 * TURN)
  const released = performance.now()
  await other.release(first, signal)
  const { held } = await store.acquire(third, signal)
  if (held) expect(performance.now() - released).toBeGreaterThan(TURN) // else it is the second's
  expect(await other.acquire(second, signal)).toMatchObject({ held: !held })
  watch.stop()
})

test('a waiter that lost its position and joined again is woken as before', async () => {
  const holder = claimOf(name())
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true })
  await other.acquire(waiter, signal)
  const watch = await watched(other, waiter)
  await server.call('kv/deleterange', { key: base64(`holdfast\t${holder.name}\tqueue\t${waiter.id}`) })
  await until('it waits again', async () => {
    await other.acquire(waiter, signal)
    return (await look(other, { name: holder.name })).length === 2
  })
  await other.release(holder, signal)
  await until('it is woken', () => watch.wakes > 0)
  watch.stop()
})

test('a waiter whose position ended before it listened is woken', async () => {
  await using store = storeOf([server])
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true, ttl: 60_000 })
  await until('it is kept', async () => Object(await store.acquire(waiter, signal)).kept === true)
  await server.call('kv/deleterange', { key: base64(`holdfast\t${holder.name}\tqueue\t${waiter.id}`) })
  await sleep(300) // the watch of the name reports it
  const watch = await watched(store, waiter)
  await until('it is woken', () => watch.wakes > 0)
  watch.stop()
})

test('no waiter starves while a name is handed over continuously', async () => {
  const stores = [storeOf([server]), storeOf([server])]
  const all = stores.map(store => createLocks(store, { ttl: 60_000 }))
  let served = 0
  const work = async (index: number): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1)
      await all[index % 2]?.using('busy', async () => {
        served += 1
      })
  }
  await Promise.all(Array.from({ length: 20 }, (_, index) => work(index)))
  expect(served).toBe(200)
  await Promise.all(all.map(locks => locks.close()))
}, 60_000)

test('the waiters of a process share a lease for their positions, and keep them by one keepalive', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const waiting = Array.from({ length: 50 }, () => createLocks(store, { ttl: 60_000 }).acquire(holder.name))
  await until('all wait', async () => (await look(other, { name: holder.name })).length === 51)
  const { kvs = [] } = await server.call<{ kvs?: { lease: string }[] }>('kv/range', {
    key: base64(`holdfast\t${holder.name}\tqueue\t`),
    range_end: base64(`holdfast\t${holder.name}\tqueue\n`),
  })
  expect(new Set(kvs.map(({ lease }) => lease)).size).toBe(1)
  relay.requests.length = 0
  const kept = (): string[] => relay.requests.filter(request => request.includes('lease/keepalive'))
  await until('they are kept', () => kept().length > 0)
  expect(kept()).toHaveLength(1)
  expect(kept()[0]?.match(/"ID"/g)).toHaveLength(2) // that lease, and the one for the next grant
  await other.release(holder, signal)
  await Promise.all(waiting.map(async each => (await each).release()))
})

test('a waiter that stopped asking loses its position although others of its process go on', async () => {
  await using store = storeOf([server])
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const [silent, alive] = [claimOf(holder.name, { queue: true }), claimOf(holder.name, { queue: true })]
  await store.acquire(silent, signal)
  await store.acquire(alive, signal)
  const watch = await watched(store, alive)
  await until('it lapses', async () => (await look(other, { name: holder.name })).length === 2, { limit: 10_000 })
  expect(await store.acquire(alive, signal)).toMatchObject({ held: false, ahead: 0 })
  watch.stop()
})
