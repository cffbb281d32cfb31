import { expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim } from '../../../contract/store.ts'
import { name, other, relay, server, store } from './relayed.ts'
import { base64, claimOf, failureOf, hold, look, read, readHeld, signal, storeOf } from './support.ts'

async function noteOf(held: string): Promise<string | undefined> {
  return (await look(other, { name: held }))[0]?.note
}

interface Key {
  readonly lease: string | undefined
  readonly create_revision: string
}

async function keyOf(held: string): Promise<Key | undefined> {
  const { kvs: [found] = [] } = await readHeld(server, held)
  return found && { lease: found.lease, create_revision: found.create_revision }
}

/** Held by a claim that found it free, which is on a pooled lease, or by one that waited, which is on its own. */
async function heldBy(way: 'directly' | 'in a queue', claim: Claim): Promise<Claim> {
  if (way === 'directly') await hold(store, claim)
  else {
    const before = claimOf(claim.name)
    await hold(other, before)
    expect(await store.acquire({ ...claim, queue: true }, signal)).toMatchObject({ held: false })
    await other.release(before, signal)
    await hold(store, { ...claim, queue: true })
  }
  return claim
}

test.each(['directly', 'in a queue'] as const)(
  'a note changes neither the lease, nor the token, nor who may renew and release, of what was had %s',
  async way => {
    const claim = await heldBy(way, claimOf(name(), { note: 'old' }))
    const before = await keyOf(claim.name)
    expect(await store.annotate({ ...claim, note: 'new', ttl: 60_000 }, signal)).toBe(true)
    expect(await keyOf(claim.name)).toEqual(before)
    expect(await other.annotate({ ...claim, note: 'by the thread' }, signal)).toBe(true)
    for (const each of [store, other]) expect(await each.renew(claim, signal)).toMatchObject({ ttl: 10_000 })
    expect(await keyOf(claim.name)).toEqual(before)
    expect(await noteOf(claim.name)).toBe('by the thread')
    expect(await store.release(claim, signal)).toBe('released')
    expect(await keyOf(claim.name)).toBeUndefined()
  },
)

test('a lease that a claim left whose note was changed serves the next claim', async () => {
  const [first, next] = [claimOf(name()), claimOf(name())]
  await hold(store, first)
  const { lease } = (await keyOf(first.name)) ?? {}
  await store.annotate({ ...first, note: 'new' }, signal)
  await store.release(first, signal)
  await hold(store, next)
  expect((await keyOf(next.name))?.lease).toBe(lease)
})

test('a stale note does not replace a newer one of the lease', async () => {
  const claim = claimOf(name())
  await hold(store, claim)
  const controller = new AbortController()
  const held = relay.holdBack(/ignore_lease/)
  const late = failureOf(store.annotate({ ...claim, note: 'late' }, controller.signal))
  const pass = await held
  expect(await other.annotate({ ...claim, note: 'newer' }, signal)).toBe(true)
  controller.abort(new Error('not in time'))
  pass()
  expect(await late).toMatchObject({ message: 'not in time' })
  expect(await noteOf(claim.name)).toBe('newer')
})

const annotate = (claim: Claim): Promise<unknown> => store.annotate({ ...claim, note: 'new' }, signal)
const extend = (claim: Claim): Promise<unknown> => store.renew({ ...claim, ttl: 20_000 }, signal)

test.each([
  ['note', /ignore_lease/, annotate, false],
  ['change of the ttl', /ignore_value/, extend, 'OUTCOME_UNKNOWN'],
] as const)(
  'a %s that arrives when another holds, on the same etcd lease, does nothing',
  async (_, match, late, answer) => {
    const claim = claimOf(name())
    await hold(store, claim)
    const { lease } = (await keyOf(claim.name)) ?? {}
    const held = relay.holdBack(match)
    const asked = late(claim).catch(error => error.code)
    const pass = await held
    await store.release(claim, signal)
    await hold(store, claimOf(claim.name, { note: 'next' }))
    const next = await keyOf(claim.name)
    expect(next?.lease).toBe(lease)
    pass()
    expect(await asked).toBe(answer)
    expect(await keyOf(claim.name)).toEqual(next)
    expect(await noteOf(claim.name)).toBe('next')
  },
)

test('a note whose answer is lost is written by the next copy of the request, and reported once', async () => {
  await using twice = storeOf([relay, server])
  const claim = claimOf(name())
  await hold(twice, claim)
  let lost = 0
  relay.onAnswer = (request, answer) => {
    if (!request.includes('ignore_lease')) return answer
    lost += 1
    return '' // carried out, and then there is no answer
  }
  expect(await twice.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
  expect(lost).toBe(1)
  expect(await noteOf(claim.name)).toBe('new')
})

test.each([
  ['note that arrives after a change of the ttl', /ignore_lease/, annotate, extend],
  ['change of the ttl that arrives after a note', /ignore_value/, extend, annotate],
] as const)('a %s counts, and so does that', async (_, match, late, meanwhile) => {
  const claim = claimOf(name())
  const token = await hold(store, claim)
  const held = relay.holdBack(match)
  const slow = late(claim)
  const pass = await held
  await meanwhile(claim)
  pass()
  await slow
  const [record] = await look(other, { name: claim.name })
  expect(record).toMatchObject({ note: 'new', token })
  expect(record?.remaining).toBeGreaterThan(15_000)
})

test('a note wakes no waiter, and the release after it does', async () => {
  const holder = claimOf(name())
  const waiting = claimOf(holder.name, { queue: true })
  await hold(other, holder)
  await store.acquire(waiting, signal)
  const controller = new AbortController()
  let wakes = 0
  const wake = (): void => {
    wakes += 1
  }
  await store.watch?.(waiting, wake, controller.signal)
  for (const note of ['1', '2', '3']) await other.annotate({ ...holder, note }, signal)
  const [, found] = await look(other, { name: holder.name })
  expect(found).toMatchObject({ state: 'waiting', position: 0 })
  const before = relay.requests.length
  await other.release(holder, signal)
  await until('it is woken', () => wakes > 0) // the watch reports events in order
  expect([wakes, relay.requests.length]).toEqual([1, before])
  expect(await store.acquire(waiting, signal)).toMatchObject({ held: true })
  controller.abort()
})

test('fields of another version next to the note are kept', async () => {
  const claim = claimOf(name())
  const value = { format: 3, id: claim.id, owner: 'newer version', note: 'old', ttl: 10_000, more: ['x'] }
  const key = `holdfast\t${claim.name}\theld\t${claim.id}`
  await server.call('kv/put', { key: base64(key), value: base64(JSON.stringify(value)) })
  expect(await store.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
  const { kvs: [found] = [] } = await read(server, key)
  expect(JSON.parse(Buffer.from(found?.value ?? '', 'base64').toString())).toEqual({ ...value, note: 'new' })
})
