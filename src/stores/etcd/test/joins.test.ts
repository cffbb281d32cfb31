import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { TURN } from '../../../contract/time.ts'
import { type HttpRelay, startRelay } from './relay.ts'
import { base64, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

let server: EtcdServer
let relay: HttpRelay
let other: Store

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

beforeEach(async () => {
  relay = await startRelay(server)
  other = storeOf([server])
})
afterEach(async () => {
  await other[Symbol.asyncDispose]()
  await relay[Symbol.asyncDispose]()
})

let count = 0
const name = (): string => `name ${count++}`

test('a waiter that gave up while it joined is not tracked', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name())
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true })
  const controller = new AbortController()
  relay.onAnswer = (request, answer) => {
    if (request.includes(base64(`holdfast\t${holder.name}\tqueue\t${waiter.id}`))) controller.abort(new Error('enough'))
    return answer
  }
  await expect(store.acquire(waiter, controller.signal)).rejects.toThrow('enough')
  await store.release(waiter, signal)
  expect(relay.requests.filter(request => request.includes('kv/range') || request.includes('/watch'))).toEqual([])
})

test('a waiter keeps its position although the answer to its join takes longer than a queue without waiters lasts', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name())
  await hold(other, holder)
  const [first, second] = [1, 2].map(() => claimOf(holder.name, { queue: true, ttl: 20_000 })) as [Claim, Claim]
  const position = base64(`holdfast\t${holder.name}\tqueue\t${first.id}`)
  const passes = Promise.withResolvers<void>()
  relay.onAnswer = async (request, answer) => {
    if (request.includes('request_put') && request.includes(position)) await passes.promise
    return answer
  }
  const joining = store.acquire(first, signal)
  await until('it has its position', async () => (await look(other, { name: holder.name })).length === 2)
  expect(await other.acquire(second, signal)).toMatchObject({ held: false, ahead: 1 })
  await sleep(2_500)
  passes.resolve()
  expect(await joining).toMatchObject({ held: false, ahead: 0 })
  expect(await store.acquire(first, signal)).toMatchObject({ held: false, ahead: 0 })
})

test('a waiter whose position lapsed joins again at the end of the queue', async () => {
  const holder = claimOf(name())
  await hold(other, holder)
  const [first, second] = [claimOf(holder.name, { queue: true, ttl: 1_000 }), claimOf(holder.name, { queue: true })]
  const joins = (claim: Claim): Promise<unknown> =>
    until('it waits', () => other.acquire(claim, signal).catch(() => undefined))
  await joins(first)
  await other.acquire(second, signal)
  await until('its position lapses', async () => (await look(other, { name: holder.name })).length === 2)
  expect(await joins(first)).toMatchObject({ held: false, ahead: 1 })
})

test('a claim that is aborted before it may join sends nothing, and the next one joins', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const controller = new AbortController()
  const join = (aborted: AbortSignal) => store.acquire(claimOf(holder.name, { ttl: 60_000, queue: true }), aborted)
  const first = join(signal)
  const given = Array.from({ length: 100 }, () => join(AbortSignal.any([controller.signal])))
  const last = join(signal)
  const reason = new Error('enough')
  controller.abort(reason)
  const settled = await Promise.allSettled(given)
  expect(settled.every(result => result.status === 'rejected' && result.reason === reason)).toBe(true)
  expect(await first).toMatchObject({ held: false })
  expect(await last).toMatchObject({ held: false })
  expect(await look(other, { name: holder.name })).toHaveLength(3)
})

test('a claim whose position was withdrawn while it joined a free name is not granted that name nevertheless', async () => {
  await using store = storeOf([relay])
  const holder = claimOf(name())
  await hold(other, holder)
  const claim = claimOf(holder.name, { queue: true })
  const position = base64(`holdfast\t${claim.name}\tqueue\t${claim.id}`)
  const joins = relay.holdBack(new RegExp(`request_put.*"${position}"`))
  const asked = failureOf(store.acquire(claim, signal))
  const pass = await joins
  await other.release(holder, signal)
  const withdrawn = Promise.withResolvers<'released' | 'gone'>()
  relay.onAnswer = async (_, answer) => {
    relay.onAnswer = (_request, next) => next
    withdrawn.resolve(other.release(claim, signal))
    await withdrawn.promise
    return answer
  }
  pass()
  expect(await withdrawn.promise).toBe('released')
  expect(await asked).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
  expect(await look(other, { name: claim.name })).toEqual([])
  expect(await other.release(claim, signal)).toBe('gone')
})

test('a claim that was passed while it joined a free name keeps its position, although its take was sent twice', async () => {
  await using next = await startRelay(server)
  await using store = storeOf([relay, next])
  const holder = claimOf(name())
  await hold(other, holder)
  const [claim, rival] = [1, 2].map(() => claimOf(holder.name, { queue: true, roundTrip: 0 })) as [Claim, Claim]
  const position = base64(`holdfast\t${claim.name}\tqueue\t${claim.id}`)
  const joins = relay.holdBack(new RegExp(`request_put.*"${position}"`))
  const [takes, copies] = [relay, next].map(each => each.holdBack(/request_delete_range/))
  const asked = store.acquire(claim, signal)
  const pass = await joins
  await other.release(holder, signal)
  pass()
  await takes
  await until('the rival passes it', async () => (await other.acquire(rival, signal)).held)
  const passCopy = await copies
  passCopy?.()
  expect(await asked).toMatchObject({ held: false, ahead: 0 })
  await other.release(rival, signal)
  await hold(store, claim)
})

test('the grace period of the first waiter begins when a process sees that the name is free, not when it first asked', async () => {
  await using store = storeOf([server])
  const each = name()
  const [holder, gone, first, second] = [1, 2, 3, 4].map(() => claimOf(each, { queue: true })) as [
    Claim,
    Claim,
    Claim,
    Claim,
  ]
  await hold(other, holder)
  expect(await other.acquire({ ...first, roundTrip: 0 }, signal)).toMatchObject({ held: false, ahead: 0 })
  await other.release(gone, signal)
  expect(await store.acquire(gone, signal)).toMatchObject({ held: false }) // from now on it has the name in mind
  await sleep(2 * TURN)
  await other.release(holder, signal)
  expect(await store.acquire(second, signal)).toMatchObject({ held: false, ahead: 1 })
})
