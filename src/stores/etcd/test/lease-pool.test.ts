import { expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import type { Claim } from '../../../contract/store.ts'
import { leaseOf, name, other, relay, server, store } from './relayed.ts'
import { base64, claimOf, hold, look, signal, storeOf } from './support.ts'

function asked(match: RegExp): number {
  return relay.requests.filter(text => match.test(text)).length
}

/** What granted the name arrives once more, as a network may have it. */
async function repeatGrant({ name: held, id }: Claim): Promise<void> {
  const key = base64(`holdfast\t${held}\theld\t${id}`)
  const text = relay.requests.find(each => each.includes(key) && each.includes('request_put'))
  const [path = '', body = ''] = text?.split(/ (.*)/s) ?? []
  await server.call(path.replace('/v3/', ''), JSON.parse(body))
}

test('claims that come one after another share one lease, and their tokens rise', async () => {
  const same = name()
  let last = 0n
  for (const each of [same, name(), same, name(), same]) {
    const claim = claimOf(each)
    const token = await hold(store, claim)
    expect(token).toBeGreaterThan(last)
    last = token
    expect(await store.release(claim, signal)).toBe('released')
  }
  expect(asked(/lease\/grant/)).toBe(1)
  expect(asked(/lease\/revoke/)).toBe(0)
})

test('simultaneous claims use separate leases, so that one ends without the other', async () => {
  const [one, two] = [claimOf(name()), claimOf(name())]
  await Promise.all([hold(store, one), hold(store, two)])
  expect(await leaseOf(one.name)).not.toBe(await leaseOf(two.name))
  await store.release(one, signal)
  expect(await store.renew(two, signal)).toBeDefined()
})

test('a stale copy of a grant does nothing when another claim uses the lease', async () => {
  const [gone, next] = [claimOf(name()), claimOf(name())]
  await hold(store, gone)
  const lease = await leaseOf(gone.name)
  await store.release(gone, signal)
  await hold(store, next)
  expect(await leaseOf(next.name)).toBe(lease)
  await repeatGrant(gone)
  expect(await look(other, { name: gone.name })).toEqual([])
  expect(await store.renew(next, signal)).toBeDefined()
})

test('R6: a copy of an acquire beside the release of its claim does not end the claim that is on the lease by then', async () => {
  const [first, next] = [claimOf(name(), { queue: true }), claimOf(name())]
  await hold(store, first)
  const lease = await leaseOf(first.name)
  const held = relay.holdBack(/range/) // the copy reads whether it holds
  const copy = store.acquire(first, signal)
  const pass = await held
  expect(await store.release(first, signal)).toBe('released')
  await hold(store, next)
  expect(await leaseOf(next.name)).toBe(lease)
  pass()
  await copy
  expect(await leaseOf(next.name)).toBe(lease)
  expect(await store.renew(next, signal)).toBeDefined()
})

test.each(['break', 'release'] as const)(
  'a %s by another store that comes late does not end the claim that is on the lease by then',
  async verb => {
    const [gone, next] = [claimOf(name()), claimOf(name())]
    await hold(other, gone)
    const lease = await leaseOf(gone.name)
    const held = relay.holdBack(/request_delete_range/)
    const late = verb === 'break' ? store.break(gone.name, { by: 'test' }, signal) : store.release(gone, signal)
    const pass = await held
    await other.release(gone, signal)
    const token = await hold(other, next)
    expect(await leaseOf(next.name)).toBe(lease)
    pass()
    expect(await late).toBe(verb === 'break' ? undefined : 'gone')
    expect(await other.renew(next, signal)).toMatchObject({ token })
  },
)

test('a lease from which another store has taken a claim is not used again', async () => {
  const claim = claimOf(name())
  await hold(store, claim)
  expect(await other.break(claim.name, { by: 'test' }, signal)).toBeDefined()
  expect(await store.renew(claim, signal)).toBeUndefined()
  expect(await store.release(claim, signal)).toBe('gone')
  await hold(store, claimOf(name()))
  expect(asked(/lease\/grant/)).toBeGreaterThan(1)
})

test('another store of the claim, such as that of the thread, renews it on its current lease', async () => {
  const claim = claimOf(name())
  const token = await hold(other, claim)
  const lease = await leaseOf(claim.name)
  for (let turn = 0; turn < 2; turn += 1) expect(await store.renew(claim, signal)).toMatchObject({ token })
  expect(await leaseOf(claim.name)).toBe(lease)
  expect(asked(/lease\/grant/)).toBe(0)
  expect(await other.release(claim, signal)).toBe('released')
})

test('a lease that ended meanwhile is replaced by a new one, in the same request', async () => {
  const [first, next] = [claimOf(name(), { queue: true }), claimOf(name())]
  await hold(store, first)
  const lease = await leaseOf(first.name)
  await store.release(first, signal)
  await server.call('lease/revoke', { ID: lease })
  await hold(store, next)
  expect(await leaseOf(next.name)).not.toBe(lease)
})

test('closing revokes the leases that no claim uses', async () => {
  const claim = claimOf(name(), { ttl: 600_000 })
  const own = storeOf([relay])
  await hold(own, claim)
  const lease = await leaseOf(claim.name)
  await own.release(claim, signal)
  await own[Symbol.asyncDispose]()
  await until('it is revoked', async () => {
    const { leases = [] } = await server.call<{ leases?: { ID: string }[] }>('lease/leases', {})
    return !leases.some(({ ID }) => ID === lease)
  })
})

test('a claim that is released repeatedly returns its lease once', async () => {
  const claim = claimOf(name())
  await hold(store, claim)
  await Promise.all([store.release(claim, signal), store.release(claim, signal)])
  await store.release(claim, signal)
  const [one, two] = [claimOf(name()), claimOf(name())]
  await Promise.all([hold(store, one), hold(store, two)])
  expect(await leaseOf(one.name)).not.toBe(await leaseOf(two.name))
})

test('a release during the keepalive of a grant leaves the lease to only one next claim', async () => {
  const first = claimOf(name())
  await hold(store, first)
  await store.release(first, signal)
  await new Promise(resolve => setTimeout(resolve, 1_100)) // more than a tenth of the ttl: it is kept alive again
  const claim = claimOf(name())
  const held = relay.holdBack(/lease\/keepalive/)
  const asked = store.acquire(claim, signal).catch(() => undefined) // it may learn of the release first
  const pass = await held
  await until('it holds', async () => (await leaseOf(claim.name)) !== undefined)
  await store.release(claim, signal)
  const next = claimOf(name())
  const token = await hold(store, next)
  pass()
  await asked
  await store.release(claim, signal)
  expect(await store.renew(next, signal)).toMatchObject({ token })
})
