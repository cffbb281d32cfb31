import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { startEtcd } from '../../../../lab/servers/etcd.ts'
import { until } from '../../../../lab/servers/until.ts'
import { startRelay } from './relay.ts'
import { leaseOf, name, other, relay, server, store } from './relayed.ts'
import { base64, claimOf, failureOf, hold, look, signal, storeOf } from './support.ts'

test('the answer of a server without a leader, or of one that shuts down, is not final', async () => {
  await using healthy = await startRelay(server)
  await using both = storeOf([relay, healthy])
  relay.answer(/lease\/grant/, 503, '{"error":"etcdserver: no leader","code":14,"message":"etcdserver: no leader"}')
  await hold(both, claimOf(name()))
  expect(healthy.requests.length).toBeGreaterThan(0)
})

test.each([
  [502, '<html>Bad Gateway</html>', 'OUTCOME_UNKNOWN', /HTTP 502: <html>Bad Gateway/],
  [301, '', 'STORE_UNAVAILABLE', /HTTP 301/],
  [403, '{"error":"no route"}', 'STORE_UNAVAILABLE', /HTTP 403: no route/],
  [404, '<html>nothing here</html>', 'STORE_UNAVAILABLE', /does not answer at \/v3/],
  [200, '<html>welcome</html>', 'OUTCOME_UNKNOWN', /not valid JSON/],
  [200, '', 'OUTCOME_UNKNOWN', /the answer is empty/],
] as const)(
  'something else that answers %i %j is told as such, and is not the last word',
  async (status, body, code, message) => {
    relay.answer(/kv\/txn/, status, body)
    expect(await failureOf(hold(store, claimOf(name())))).toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
    await using healthy = await startRelay(server)
    await using both = storeOf([relay, healthy])
    relay.answer(/kv\/txn/, status, body)
    await hold(both, claimOf(name()))
    expect(healthy.requests.length).toBeGreaterThan(0)
  },
)

/** Past the relay, which holds it back. */
async function carryOutLast(requests: readonly string[] = relay.requests): Promise<void> {
  const [path = '', body = ''] = requests.at(-1)?.split(/ (.*)/s) ?? []
  await server.call(path.replace('/v3/', ''), JSON.parse(body))
}

test('an unresponsive server is replaced by the next one, and a release that it still carried out counts', async () => {
  await using next = await startRelay(server)
  await using both = storeOf([relay, next])
  const claim = claimOf(name())
  await hold(both, claim)
  const held = relay.holdBack(/request_delete_range/)
  const released = both.release(claim, signal)
  const pass = await held
  pass()
  expect(await released).toBe('released')
  const another = claimOf(name())
  await hold(both, another)
  const lost = relay.holdBack(/request_delete_range/)
  const again = both.release(another, signal)
  await lost
  await carryOutLast() // as the unresponsive one did
  expect(await again).toBe('released')
})

describe('a grant whose answer is lost, and that is asked for again at the next server,', () => {
  const claims = [claimOf('', { queue: false }), claimOf('', { queue: true })]

  test.each(claims)('is a grant on a lease that no other claim uses (queue: $queue)', async ({ queue }) => {
    await using next = await startRelay(server)
    await using both = storeOf([relay, next])
    const [claim, later] = [claimOf(name(), { queue }), claimOf(name(), { queue })]
    const lost = relay.holdBack(/kv\/txn.*request_put/)
    const granted = hold(both, claim)
    await lost
    await carryOutLast() // as the unresponsive one did
    const token = await granted
    await hold(both, later)
    expect(await leaseOf(later.name)).not.toBe(await leaseOf(claim.name))
    expect(await both.renew({ ...later, ttl: 60_000 }, signal)).toBeDefined()
    expect(await both.release(later, signal)).toBe('released')
    expect(await both.renew(claim, signal)).toMatchObject({ token })
    expect(await both.release(claim, signal)).toBe('released')
    expect(await look(other, { name: claim.name })).toEqual([])
  })

  test.each(claims)('does nothing if it arrives after the next one refused (queue: $queue)', async ({ queue }) => {
    await using next = await startRelay(server)
    await using both = storeOf([relay, next])
    const claim = claimOf(name(), { queue })
    const holder = claimOf(claim.name)
    const [lost, repeated] = [relay, next].map(each => each.holdBack(/kv\/txn.*request_put/))
    const asked = both.acquire(claim, signal)
    await lost
    const requests = [...relay.requests]
    const pass = await repeated
    await hold(other, holder)
    pass?.()
    expect(await asked).toMatchObject({ held: false })
    if (queue) await both.release(claim, signal)
    await other.release(holder, signal)
    await expect(carryOutLast(requests)).rejects.toThrow(/lease not found/)
    expect(await look(other, { name: claim.name })).toEqual([])
  })
})

test.each(['break', 'release'] as const)(
  'a %s by another store, which a silent server carried out all the same, is one',
  async verb => {
    await using next = await startRelay(server)
    await using both = storeOf([relay, next])
    const claim = claimOf(name())
    const token = await hold(other, claim)
    const lost = relay.holdBack(/request_delete_range/)
    const ended = verb === 'break' ? both.break(claim.name, { by: 'test' }, signal) : both.release(claim, signal)
    await lost
    await carryOutLast() // as the unresponsive one did
    if (verb === 'release') return expect(await ended).toBe('released')
    expect(await ended).toBeGreaterThan(token)
    expect(await hold(other, claimOf(claim.name))).toBeGreaterThan((await ended) as bigint)
  },
)

test('a full database is reported, and leases are still released', async () => {
  await using full = await startEtcd({ args: ['--quota-backend-bytes=2000000'] })
  await using leases = storeOf([full])
  const claim = claimOf('a')
  await hold(leases, claim)
  const value = base64('x'.repeat(500_000))
  const fill = async (): Promise<void> => {
    for (;;) await full.call('kv/put', { key: base64('fill'), value })
  }
  await failureOf(fill())
  const error = await failureOf(hold(leases, claimOf('b')))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/database of etcd is full/) })
  expect(await leases.renew(claim, signal)).toBeDefined()
  expect(await leases.release(claim, signal)).toBe('released')
  await until('it shows', async () => (await look(leases, { name: 'a' })).length === 0)
})

test('many simultaneous requests wait for connections, and do not make a server count as unresponsive', async () => {
  await using second = await startRelay(server)
  await using both = storeOf([relay, second])
  await hold(both, claimOf(name()))
  const held = Array.from({ length: 32 }, () => relay.holdBack(/lease\/grant/))
  const asked = Promise.allSettled(
    Array.from({ length: 100 }, () => hold(both, claimOf(name(), { queue: true, ttl: 60_000 }))),
  )
  const passes = await Promise.all(held)
  const before = second.requests.length
  await sleep(200) // those behind have not left yet
  expect(second.requests.length).toBe(before)
  for (const pass of passes) pass()
  for (const { status } of await asked) expect(status).toBe('fulfilled')
})

test('requests not yet sent to an unresponsive server go to the next one', async () => {
  await using second = await startRelay(server)
  await using both = storeOf([relay, second])
  await hold(both, claimOf(name()))
  const held = Array.from({ length: 32 }, () => relay.holdBack(/lease\/grant/))
  const asked = Promise.allSettled(
    Array.from({ length: 100 }, () => hold(both, claimOf(name(), { queue: true, ttl: 60_000 }))),
  )
  await Promise.all(held)
  for (const { status } of await asked) expect(status).toBe('fulfilled')
  expect(second.requests.filter(each => each.includes('lease/grant')).length).toBeGreaterThanOrEqual(100)
})
