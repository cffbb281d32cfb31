import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { failureOf, nodesOf, signal } from '../../../../test/support.ts'
import { CHECK } from '../../../contract/request.ts'
import { createLocks, type LeaseError, type Locks } from '../../../index.ts'
import { type Fault, faults, heard, IMPATIENT, type Nodes, startNodes, TRUSTED } from './support.ts'

const TTL = 2_000
const kinds = Object.keys(faults) as Fault[]

/** Rejects if it hangs. */
async function settled<T>(what: string, answer: Promise<T>): Promise<T> {
  const late = sleep(15_000, undefined, { ref: false }).then(() => {
    throw new Error(`${what} has not settled`)
  })
  return Promise.race([answer, late])
}

async function freeEverywhere(nodes: Nodes, name: string): Promise<void> {
  const isFree = async (): Promise<boolean> => (await nodes.holders(name)).every(id => id === undefined)
  await until(`${name} is free at every node`, isFree)
}

describe.concurrent('with one of five nodes', () => {
  test.each(kinds)('%s, leases are had, kept by heartbeat, extended and released', async fault => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(), { ttl: TTL })
    const rival = createLocks(await nodes.connected(), { ttl: TTL })
    const before = await locks.acquire('before')
    await faults[fault](nodes, 2)
    const during = await locks.acquire('during')
    await during.extend()
    await sleep(2.5 * TTL)
    for (const lease of [before, during]) {
      lease.assertHeld()
      expect(await rival.tryAcquire(lease.name)).toBeUndefined()
    }
    await before.release()
    const next = await rival.acquire('before')
    expect(next.token).toBeGreaterThan(before.token)
    await next.extend()
    await during.release()
    await next.release()
    // Requests that were given up and are carried out now leave nothing.
    await nodes.heal()
    await freeEverywhere(nodes, 'before')
    await freeEverywhere(nodes, 'during')
    await locks.close()
    await rival.close()
  })
})

describe.concurrent('with three of five nodes', () => {
  test.each(kinds)('%s, nothing hangs, and nothing stays locked once they answer', async fault => {
    await using nodes = await startNodes(5)
    // A try may take a third of the ttl: more than six times as long as a node.
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: 3 * TTL })
    const lease = await locks.acquire('a', { heartbeat: false, ttl: 30_000 })
    for (const index of [0, 2, 4]) await faults[fault](nodes, index)
    const outcomes = await settled(
      'a call',
      Promise.all([
        failureOf(locks.tryAcquire('b')),
        failureOf(locks.acquire('c', { wait: 200 })),
        failureOf(locks.acquire('d')),
        failureOf(locks.using('e', { wait: 0 }, async () => {})),
        failureOf(locks.inspect('a')),
        failureOf(Array.fromAsync(locks.list())),
        failureOf(locks.break('z')),
        failureOf(lease.extend()),
      ]),
    )
    const [short] = outcomes.splice(1, 1) // its wait is shorter than a request may take
    expect(short?.code).toMatch(/^(STORE_UNAVAILABLE|BUSY)$/)
    for (const { code } of outcomes) expect(code).toMatch(/^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
    expect(outcomes[0]).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(outcomes[0]?.message).toMatch(/^no majority of the 5 nodes is available: /)
    lease.assertHeld()
    await nodes.heal()
    const rival = createLocks(await nodes.connected())
    for (const name of ['b', 'c', 'd', 'e']) await (await settled(name, rival.acquire(name))).release()
    await until('it is extended', () => lease.extend().catch(() => 0))
    await lease.release()
    await (await settled('a', rival.acquire('a'))).release()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await freeEverywhere(nodes, name)
    await settled('closing', Promise.all([locks.close(), rival.close()]))
  })

  test.each(kinds)('%s, close settles, and what was held ends with its ttl', async fault => {
    await using nodes = await startNodes(5)
    const locks = createLocks(await nodes.connected(IMPATIENT), { ttl: TTL })
    await locks.acquire('a')
    for (const index of [1, 2, 3]) await faults[fault](nodes, index)
    const waiting = failureOf(locks.acquire('b'))
    await settled('closing', locks.close({ grace: 0 }))
    expect((await waiting).code).toBe('CLOSED')
    await nodes.heal()
    const rival = createLocks(await nodes.connected())
    for (const name of ['a', 'b']) await (await settled(name, rival.acquire(name))).release()
    await rival.close()
  })
})

test('R13: a break that was given up while no server could be reached ends no lease when they can', async () => {
  await using nodes = await startNodes(3)
  const store = nodes.store(IMPATIENT)
  for (const { up } of nodes.proxies) up.hold()
  expect(await failureOf(store.break?.('a', { by: 'test' }, signal) ?? Promise.resolve())).toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  await using holder = createLocks(nodes.store(TRUSTED, nodes.servers))
  await using lease = await holder.acquire('a', { ttl: 60_000 })
  for (const { up } of nodes.proxies) up.pass()
  await until('it is connected', async () => (await nodesOf(store)).every(({ state }) => state === 'serving'))
  await lease.extend()
})

test('a holder is notified in time that a majority is gone', async () => {
  await using nodes = await startNodes(5)
  const locks = createLocks(await nodes.connected(), { ttl: TTL })
  const lease = await locks.acquire('a')
  const aborted = once(lease.signal, 'abort')
  for (const index of [0, 1, 2]) await nodes.servers[index]?.pause()
  await settled('the signal', aborted)
  expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  for (const index of [0, 1, 2]) nodes.servers[index]?.resume()
  const rival = createLocks(nodes.store())
  await (await rival.acquire('a')).release()
  expect(await lease.release()).toBe('lost')
  await locks.close()
  await rival.close()
})

// Every way in which one, two or three of three nodes can be dead at once; the order of the nodes means nothing.
const mixtures = kinds.flatMap((first, at) => [
  [first],
  ...kinds
    .slice(at)
    .flatMap((second, next) => [[first, second], ...kinds.slice(at + next).map(third => [first, second, third])]),
])

test('any mixture of dead nodes is reported node by node, until they answer', { timeout: 60_000 }, async () => {
  const password = 's3cr@t'
  await using nodes = await startNodes(3, () => ({ password }))
  const locks = createLocks(await nodes.connected({ ...IMPATIENT, nodeTimeout: 400 }), { ttl: 3 * TTL })
  expect(mixtures).toHaveLength(4 + 10 + 20)
  for (const [round, mixture] of mixtures.entries()) {
    const what = mixture.join(', ')
    await until(`all serve before: ${what}`, async () => {
      const states = await nodesOf(locks.store)
      return states?.every(({ state }) => state === 'serving')
    })
    const held = await locks.acquire(`held ${round}`)
    for (const [index, fault] of mixture.entries()) await faults[fault](nodes, index)
    if (mixture.length > 1) {
      const error = (await failureOf(settled(what, locks.tryAcquire(`new ${round}`)))) as LeaseError
      expect(error, what).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
      const { errors } = error.cause as AggregateError
      const dead = nodes.names.slice(0, mixture.length)
      // Two are enough to know; of those that have not said yet nothing is said.
      expect(errors.length).toBeGreaterThanOrEqual(2)
      expect(error.message).toMatch(/^no majority of the 3 nodes is available: /)
      for (const { code, message, cause } of errors) {
        expect(cause).toBeUndefined()
        expect(code).toMatch(/^(OUTCOME_UNKNOWN|STORE_UNAVAILABLE)$/)
        expect(dead).toContain(message.split(': ')[0])
        expect(error.message).toContain(message.replace(CHECK, '')) // that is said once
      }
      expectSmall(error)
    }
    if (mixture.length > 1) await nodes.heal()
    const again = await until(`it is had: ${what}`, () => acquireAgain(locks, `new ${round}`))
    await again.release()
    await nodes.heal()
    await held[Symbol.asyncDispose]() // it may be lost
  }
  await locks.close()

  function expectSmall(error: LeaseError): void {
    const text = inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })
    expect(text.length).toBeLessThan(6_000)
    expect(JSON.stringify(error).length).toBeLessThan(1_000)
    expect(text).not.toMatch(/Socket|Redis \{|Commander|s3cr/)
  }
})

async function acquireAgain(locks: Locks, name: string): Promise<{ release(): Promise<unknown> } | undefined> {
  return locks.tryAcquire(name).catch(() => undefined)
}

test('a node that fails and answers again is reported once each', async () => {
  await using nodes = await startNodes(3)
  using failed = heard('node_failed', event => nodes.names.includes(event.node))
  using restored = heard('node_restored', event => nodes.names.includes(event.node))
  const locks = createLocks(await nodes.connected())
  const node = nodes.names[1]
  await nodes.servers[1]?.kill()
  await until('it is noticed', async () => {
    await (await locks.acquire('a')).release()
    return failed.length > 0
  })
  for (let count = 0; count < 5; count += 1) await (await locks.acquire('a')).release()
  expect([...failed]).toMatchObject([{ node, error: { retryable: true } }])
  await nodes.servers[1]?.start()
  await until('it is back', async () => {
    await (await locks.acquire('a')).release()
    return restored.length > 0
  })
  expect([...restored]).toEqual([{ node }])
  await locks.close()
})

test('a problem of one name does not affect other names', async () => {
  await using nodes = await startNodes(3)
  using failed = heard('node_failed', event => nodes.names.includes(event.node))
  const locks = createLocks(await nodes.connected())
  for (const server of nodes.servers) await server.call('SET', 'holdfast:redlock:{:bad}', '2 of a later version')
  for (let count = 0; count < 20; count += 1) {
    const refused = failureOf(locks.tryAcquire('bad'))
    await (await locks.acquire('good', { wait: 0 })).release()
    expect(await refused).toMatchObject({
      code: 'FORMAT_MISMATCH',
      retryable: false,
      message: expect.stringMatching(/format 2/),
    })
  }
  expect([...failed]).toEqual([])
  await locks.close()
})

test('an unresponsive node is noticed while waiters come, although subscriptions use another connection', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected({ trustRestarted: true, nodeTimeout: 300 })
  const locks = createLocks(store)
  const holder = await locks.acquire('a')
  const controller = new AbortController()
  const waiters = setInterval(() => locks.acquire('a', { signal: controller.signal }).catch(() => {}), 20)
  using failed = heard('node_failed', event => event.node === nodes.names[0])
  await nodes.servers[0]?.pause()
  const before = performance.now()
  await until('it is noticed', () => failed.length > 0)
  // Before the connection to it is given up, after 5 s, or replaced.
  expect(performance.now() - before).toBeLessThan(3_000)
  clearInterval(waiters)
  controller.abort()
  nodes.servers[0]?.resume()
  await holder.release()
  await locks.close()
})
