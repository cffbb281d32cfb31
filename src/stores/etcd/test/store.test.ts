import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../create-locks.ts'
import { base64, claimOf, failureOf, hold, look, read, signal, storeOf } from './support.ts'

let server: EtcdServer
let proxy: TcpProxy
/** Through the proxy, and past it. */
let store: Store
let other: Store

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

beforeEach(async () => {
  proxy = await startProxy(server)
  ;[store, other] = [storeOf([proxy]), storeOf([server])]
})
afterEach(async () => {
  await Promise.all([store[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
  await proxy.stop()
})

let count = 0
const name = (): string => `name ${count++}`

async function revision(at: EtcdServer): Promise<string> {
  return (await read(at, 'nothing')).header.revision
}

async function leases(at: EtcdServer): Promise<number> {
  const { leases = [] } = await at.call<{ leases?: unknown[] }>('lease/leases', {})
  return leases.length
}

describe('the data in etcd', () => {
  test('the token is the create revision of the key, which ends with its lease', async () => {
    const claim = claimOf(name(), { owner: 'me', note: 'why' })
    const token = await hold(store, claim)
    const key = `holdfast\t${claim.name}\theld\t${claim.id}`
    const [found] = (await read(server, key)).kvs ?? []
    expect(found?.create_revision).toBe(token.toString())
    const { id } = claim
    expect(JSON.parse(Buffer.from(found?.value ?? '', 'base64').toString())).toEqual({
      format: 3,
      id,
      owner: 'me',
      note: 'why',
      ttl: 10_000,
    })
    await server.call('lease/revoke', { ID: found?.lease })
    expect(await store.renew(claim, signal)).toBeUndefined()
  })

  test('nothing is left of a claim that was released, neither a key nor a lease', async () => {
    await using own = await startEtcd()
    await using store = storeOf([own])
    const claim = claimOf(name())
    await hold(store, claim)
    await store.renew({ ...claim, ttl: 20_000 }, signal)
    const waiter = claimOf(claim.name, { queue: true })
    await store.acquire(waiter, signal)
    const loser = claimOf(claim.name)
    await store.acquire(loser, signal)
    expect(await store.release(waiter, signal)).toBe('released')
    expect(await store.release(claim, signal)).toBe('released')
    const range = { key: base64(`holdfast\t${claim.name}\t`), range_end: base64(`holdfast\t${claim.name}\n`) }
    expect(await own.call('kv/range', range)).not.toHaveProperty('kvs')
    await store[Symbol.asyncDispose]()
    await until('no lease is left', async () => (await leases(own)) === 0)
  })

  test('a failed attempt, or a waiter that asks again, writes nothing', async () => {
    await using own = await startEtcd()
    await using store = storeOf([own])
    const claim = claimOf(name())
    await hold(store, claim)
    const waiter = claimOf(claim.name, { queue: true })
    await store.acquire(waiter, signal)
    const [revisionBefore, leasesBefore] = [await revision(own), await leases(own)]
    for (let tries = 0; tries < 5; tries += 1) {
      expect((await store.acquire(claimOf(claim.name), signal)).held).toBe(false)
      expect((await store.acquire(waiter, signal)).held).toBe(false)
    }
    expect([await revision(own), await leases(own)]).toEqual([revisionBefore, leasesBefore])
  })

  test('leases of one prefix exclude each other, and those of another do not', async () => {
    await using apart = storeOf([server], { prefix: 'holdfast\u00b7a' })
    const claim = claimOf(name())
    const token = await hold(store, claim)
    expect(await hold(apart, claimOf(claim.name))).toBeGreaterThan(token)
    expect((await other.acquire(claimOf(claim.name), signal)).held).toBe(false)
    expect((await look(apart, { prefix: '' })).length).toBe(1)
  })

  test('another format is refused, and not changed', async () => {
    const claim = claimOf(name())
    const key = `holdfast\t${claim.name}\theld\t${claim.id}`
    await server.call('kv/put', { key: base64(key), value: base64('{"format":1,"id":"x"}') })
    for (const verb of ['acquire', 'renew', 'annotate', 'release'] as const)
      expect(await failureOf(store[verb](claim, signal))).toMatchObject({ code: 'FORMAT_MISMATCH', retryable: false })
    expect((await read(server, key)).kvs).toHaveLength(1)
    expect(await store.break(claim.name, { by: 'test' }, signal)).toBeDefined() // a way out
    await hold(store, claim)
  })
})

describe('the ttl', () => {
  test.each([
    [300, 1_000],
    [1_000, 1_000],
    [1_001, 2_000],
    [2_500, 3_000],
  ])('of %i ms is granted as %i ms', async (ttl, granted) => {
    const claim = claimOf(name(), { ttl: 60_000 })
    await hold(store, claim) // a short ttl leaves a request little time
    const renewed = await until('it is renewed', () => store.renew({ ...claim, ttl }, signal))
    expect(renewed.ttl).toBe(granted)
  })

  test('is at least what a server with the settings of etcd grants: 2 s', async () => {
    await using usual = await startEtcd({ args: ['--heartbeat-interval=100', '--election-timeout=1000'] })
    await using leases = storeOf([usual])
    const locks = createLocks(leases, { ttl: 1_000 })
    const lease = await locks.acquire('a')
    expect(lease.remaining).toBeGreaterThan(1_000)
    await lease.release()
  })

  test('can be changed back and forth; the key stays, and its former leases are gone', async () => {
    await using own = await startEtcd()
    await using store = storeOf([own])
    await using other = storeOf([own])
    const claim = claimOf(name())
    const token = await hold(store, claim)
    for (const ttl of [20_000, 5_000, 10_000, 20_000]) {
      expect(await store.renew({ ...claim, ttl }, signal)).toEqual({ held: true, token, ttl })
      expect(await leases(own)).toBe(1)
    }
    expect(await other.renew({ ...claim, ttl: 7_000 }, signal)).toEqual({ held: true, token, ttl: 7_000 })
    expect(await store.release(claim, signal)).toBe('released')
    expect(await look(store, { name: claim.name })).toEqual([])
  })
})

test('a holder whose ttl was changed asks again, and neither waits nor has a position', async () => {
  const claim = claimOf(name(), { queue: true })
  const token = await hold(store, claim)
  await store.renew({ ...claim, ttl: 20_000 }, signal)
  expect(await store.acquire(claim, signal)).toMatchObject({ held: true, token })
  expect(await look(other, { name: claim.name })).toMatchObject([{ state: 'held' }])
  expect(await store.renew({ ...claim, ttl: 20_000 }, signal)).toMatchObject({ token })
  expect(await store.release(claim, signal)).toBe('released')
  expect(await look(other, { name: claim.name })).toEqual([])
})

describe('requests whose answers are lost', () => {
  test.each(['lease/grant', 'kv/txn'])(
    'an acquire that lost its answer to %s is recovered by asking again',
    async path => {
      const claim = claimOf(name(), { queue: true })
      const cut = proxy.cutAfterRequest(path)
      const failed = await failureOf(store.acquire(claim, signal))
      expect(failed).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      await cut
      const token = await hold(store, claim)
      expect(await store.renew(claim, signal)).toMatchObject({ token })
      expect(await look(store, { name: claim.name })).toHaveLength(1)
    },
  )

  test('a position is kept when the answer was lost', async () => {
    const holder = claimOf(name())
    await hold(other, holder)
    const [first, second] = [claimOf(holder.name, { queue: true }), claimOf(holder.name, { queue: true })]
    const cut = proxy.cutAfterRequest(base64(`holdfast\t${holder.name}\tqueue\t${first.id}`)) // the request that joins the queue
    await failureOf(store.acquire(first, signal))
    await cut
    expect(await other.acquire(second, signal)).toMatchObject({ held: false, ahead: 1 })
    expect(await store.acquire(first, signal)).toMatchObject({ held: false, ahead: 0 })
  })

  test('a release whose answer was lost has been carried out', async () => {
    const locks = createLocks(store)
    const lease = await locks.acquire(name())
    const cut = proxy.cutAfterRequest('request_delete_range')
    await lease.release()
    await cut
    await hold(other, claimOf(lease.name))
    await locks.close()
  })

  test('a claim that was granted after its sender gave up ends with its withdrawal', async () => {
    const claim = claimOf(name())
    proxy.down.hold() // carried out, and not answered
    const controller = new AbortController()
    const asked = failureOf(store.acquire(claim, controller.signal))
    await sleep(50)
    controller.abort(new Error('enough'))
    proxy.down.pass()
    await asked
    await store.release(claim, signal)
    expect((await other.acquire(claimOf(claim.name), signal)).held).toBe(true)
    expect((await other.acquire(claim, signal)).held).toBe(false)
  })
})

describe('changes by other programs', () => {
  test('a key that was deleted by hand is noticed at the next renewal', async () => {
    const claim = claimOf(name())
    await hold(store, claim)
    await server.call('kv/deleterange', { key: base64(`holdfast\t${claim.name}\theld\t${claim.id}`) })
    expect(await store.renew(claim, signal)).toBeUndefined()
  })

  test('break returns a token between those of the old holder and the next waiter', async () => {
    const claim = claimOf(name())
    const token = await hold(store, claim)
    const waiter = claimOf(claim.name, { queue: true })
    await other.acquire(waiter, signal)
    const broken = await other.break(claim.name, { by: 'test' }, signal)
    expect(broken).toBeGreaterThan(token)
    expect(await hold(other, waiter)).toBeGreaterThan(broken as bigint)
    expect(await store.renew(claim, signal)).toBeUndefined()
    expect(await store.release(claim, signal)).toBe('gone')
  })

  test('break ends a lease whose ttl was changed, and a key without a lease', async () => {
    const claim = claimOf(name())
    const token = await hold(store, claim)
    await store.renew({ ...claim, ttl: 30_000 }, signal)
    expect(await other.break(claim.name, { by: 'test' }, signal)).toBeGreaterThan(token)
    expect(await store.renew({ ...claim, ttl: 30_000 }, signal)).toBeUndefined()
    await server.call('kv/put', { key: base64(`holdfast\t${claim.name}\theld\tx`), value: base64('by hand') })
    expect(await other.break(claim.name, { by: 'test' }, signal)).toBeDefined()
    expect(await look(other, { name: claim.name })).toEqual([])
  })

  test('a key without a lease does not cause constant requests', async () => {
    const claim = claimOf(name(), { queue: true })
    const value = base64(JSON.stringify({ format: 3, id: 'x', owner: 'by hand', note: '', ttl: 1 }))
    await server.call('kv/put', { key: base64(`holdfast\t${claim.name}\theld\tx`), value })
    const answer = await store.acquire(claim, signal)
    expect(answer).toMatchObject({ held: false, ahead: 0, holder: { owner: 'by hand' } })
    if (!answer.held) expect(answer.retryAfter).toBeGreaterThan(400)
  })

  test('tokens rise across a restart of the server', async () => {
    const claim = claimOf(name())
    const token = await hold(store, claim)
    await store.release(claim, signal)
    await server.restart()
    const later = await until('it serves', () => hold(store, claimOf(claim.name)))
    expect(later).toBeGreaterThan(token)
  })
})

test('a connection that was closed while idle fails no request', async () => {
  await hold(store, claimOf(name()))
  proxy.reset()
  await sleep(20)
  await hold(store, claimOf(name()))
})

test('tokens fall if the server lost all its data, whatever its clock says', async () => {
  const lost = await startEtcd()
  const claim = claimOf('falling')
  const before = storeOf([lost])
  for (let round = 0; round < 20; round += 1) {
    await hold(before, claimOf('another'))
    await before.break('another', { by: 'test' }, signal)
  }
  const token = await hold(before, claim)
  await before[Symbol.asyncDispose]()
  await lost.kill()
  rmSync(join(lost.folder, 'data'), { recursive: true })
  await lost.start()
  const after = storeOf([lost])
  expect(await until('it serves', () => hold(after, claimOf('falling')))).toBeLessThan(token)
  await after[Symbol.asyncDispose]()
  await lost.stop()
})
