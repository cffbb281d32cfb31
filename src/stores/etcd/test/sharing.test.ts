import { describe, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { type Claim, LARGEST_LIMIT, type Store } from '../../../contract/store.ts'
import { createLocks } from '../../../create-locks.ts'
import { name, other, relay, server, store } from './relayed.ts'
import { base64, claimOf, failureOf, hold, look, read, signal, storeOf } from './support.ts'

function readerOf(held: string, parameters: Partial<Claim> = {}): Claim {
  return claimOf(held, { limit: LARGEST_LIMIT, ...parameters })
}

function takes(): number {
  return relay.requests.filter(request => request.includes('"LESS"') && request.includes('request_put')).length
}

async function slotsOf(at: Store, claim: Claim): Promise<readonly number[] | undefined> {
  const answer = await at.acquire(claim, signal)
  return answer.held ? (answer.slots ?? [0]) : undefined
}

/** Asks for a name that `first` holds, and holds the transaction back that grants it. */
async function decided(claim: Claim): Promise<{ asked: Promise<readonly number[] | undefined>; pass: () => void }> {
  const held = relay.holdBack(/"LESS".*request_put/)
  const asked = slotsOf(store, claim)
  return { asked, pass: await held }
}

describe('a grant that was decided for a state that was read', () => {
  test('fails and is decided again if another client was granted the name meanwhile', async () => {
    const first = readerOf(name())
    await hold(other, first)
    const { asked, pass } = await decided(readerOf(first.name))
    expect(await slotsOf(other, readerOf(first.name))).toEqual([1])
    pass()
    expect(await asked).toEqual([2])
    expect(takes()).toBe(2)
    const records = await look(other, { name: first.name })
    expect(new Set(records.map(({ token }) => token)).size).toBe(3)
  })

  test('is decided again if one of few holders left meanwhile, and takes the lowest free slot', async () => {
    const [first, second] = [readerOf(name()), readerOf('')]
    await hold(other, first)
    await hold(other, { ...second, name: first.name })
    const { asked, pass } = await decided(readerOf(first.name))
    await other.release(first, signal)
    pass()
    expect(await asked).toEqual([0])
    expect(takes()).toBe(2)
  })

  test('is carried out if some of many holders left meanwhile', async () => {
    const held = name()
    const readers = Array.from({ length: 17 }, () => readerOf(held))
    for (const reader of readers) await hold(other, reader)
    const { asked, pass } = await decided(readerOf(held))
    for (const reader of readers.slice(0, 5)) await other.release(reader, signal)
    pass()
    expect(await asked).toEqual([17])
    expect(takes()).toBe(1)
  })

  test('fails if a writer began to wait meanwhile, and the reader comes after it', async () => {
    const first = readerOf(name())
    await hold(other, first)
    const { asked, pass } = await decided(readerOf(first.name, { queue: true }))
    const writer = claimOf(first.name, { queue: true })
    expect(await other.acquire(writer, signal)).toMatchObject({ held: false, ahead: 0 })
    pass()
    expect(await asked).toBeUndefined()
    const waiting = (await look(other, { name: first.name })).filter(({ state }) => state === 'waiting')
    expect(waiting.map(({ limit = 1 }) => limit)).toEqual([1, LARGEST_LIMIT])
    await other.release(first, signal)
    expect(await slotsOf(other, writer)).toEqual([0])
  })

  test('is refused if the claim was withdrawn meanwhile', async () => {
    const first = readerOf(name())
    await hold(other, first)
    const claim = readerOf(first.name)
    const { asked, pass } = await decided(claim)
    expect(await other.release(claim, signal)).toBe('gone')
    pass()
    expect(await asked).toBeUndefined()
  })
})

test('readers of several clients that come at once all hold, each with a slot and a token of its own', async () => {
  const stores = Array.from({ length: 5 }, () => storeOf([server]))
  const held = name()
  const locks = stores.map(each => createLocks(each, { ttl: 30_000 }))
  const permits = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => locks[index % 5]?.readWrite(held).reader.acquire()),
  )
  expect(new Set(permits.map(permit => permit?.slot)).size).toBe(50)
  expect(Math.max(...permits.map(permit => permit?.slot ?? 0))).toBe(49)
  expect(new Set(permits.map(permit => permit?.token)).size).toBe(50)
  await Promise.all(permits.map(async permit => permit?.release()))
  await Promise.all(locks.map(each => each.close()))
}, 60_000)

describe('a waiter that was passed', () => {
  /** The second of two waiters holds, because the first did not ask within its grace period. */
  async function passed(): Promise<{ first: Claim; second: Claim }> {
    const holder = claimOf(name())
    await hold(other, holder)
    const [first, second] = [claimOf(holder.name, { queue: true }), claimOf(holder.name, { queue: true })]
    await other.acquire(first, signal)
    await store.acquire(second, signal)
    await other.release(holder, signal)
    await until('the second holds', async () => (await store.acquire(second, signal)).held)
    return { first, second }
  }

  const isPassed = async ({ name: held, id }: Claim): Promise<boolean> => {
    const { kvs: [found] = [] } = await read(server, `holdfast\t${held}\tqueue\t${id}`)
    return JSON.parse(Buffer.from(found?.value ?? '', 'base64').toString()).passed === true
  }

  test('costs no further grace period, whichever client comes next', async () => {
    const { first, second } = await passed()
    expect(await isPassed(first)).toBe(true)
    await store.release(second, signal)
    await using third = storeOf([server])
    expect(await third.acquire(claimOf(first.name, { queue: true }), signal)).toMatchObject({ held: true })
  })

  test('keeps its position, and counts again once it asks', async () => {
    const { first, second } = await passed()
    expect(await other.acquire(first, signal)).toMatchObject({ held: false, ahead: 0 })
    expect(await isPassed(first)).toBe(false)
    const third = claimOf(first.name, { queue: true })
    expect(await other.acquire(third, signal)).toMatchObject({ held: false, ahead: 1 })
    await store.release(second, signal)
    expect(await other.acquire(first, signal)).toMatchObject({ held: true })
  })
})

test('a position is on a lease of 5 s, and the name on one of the ttl of the claim', async () => {
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const waiter = claimOf(holder.name, { queue: true, ttl: 60_000 })
  await store.acquire(waiter, signal)
  const ttlOf = async (key: string): Promise<unknown> => {
    const [{ lease } = {}] = (await read(server, key)).kvs ?? []
    return (await server.call<{ grantedTTL?: string }>('lease/timetolive', { ID: lease })).grantedTTL
  }
  expect(await ttlOf(`holdfast\t${holder.name}\tqueue\t${waiter.id}`)).toBe('5')
  await other.release(holder, signal)
  await hold(store, waiter)
  expect(await ttlOf(`holdfast\t${holder.name}\theld\t${waiter.id}`)).toBe('60')
})

test('a position that a stale request creates for nobody lapses although others of its process wait', async () => {
  const holder = claimOf(name(), { ttl: 60_000 })
  await hold(other, holder)
  const alive = createLocks(store, { ttl: 60_000 }).acquire(holder.name)
  const waiters = async (): Promise<number> => (await look(other, { name: holder.name })).length - 1
  await until('it waits', async () => (await waiters()) === 1)
  const late = claimOf(holder.name, { queue: true, ttl: 60_000 })
  const controller = new AbortController()
  const held = relay.holdBack(new RegExp(base64(`holdfast\t${holder.name}\tqueue\t${late.id}`)))
  const asked = failureOf(store.acquire(late, controller.signal))
  const pass = await held
  controller.abort(new Error('enough'))
  pass()
  await asked
  expect(await waiters()).toBe(2)
  await until('it lapses', async () => (await waiters()) === 1, { limit: 10_000 })
  await other.release(holder, signal)
  await (await alive).release()
})
