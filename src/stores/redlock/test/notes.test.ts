import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, failureOf, hold, look, nodesOf, signal } from '../../../../test/support.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { requestLimit } from '../../../contract/time.ts'
import { type Nodes, startNodes, TRUSTED } from './support.ts'

/** Past all stores, what a node says of the ttl of the name and what follows, without the spaces at the end. */
async function lease(nodes: Nodes, index: number): Promise<string> {
  const value = await nodes.servers[index]?.call('GET', 'holdfast:redlock:{:a}')
  return String(value).split(' ').slice(5).join(' ').trimEnd()
}

/** A claim that all nodes hold. */
async function heldByAll(nodes: Nodes, store: Store): Promise<Claim & { readonly token: bigint }> {
  const claim = claimOf('a', { note: 'at first' })
  const token = await hold(store, claim)
  await until('all voted', async () => (await nodes.holders('a')).every(id => id === claim.id))
  return { ...claim, token }
}

/** How many scripts a node has run. */
async function calls(nodes: Nodes, index: number): Promise<number> {
  const stats = await nodes.servers[index]?.info('commandstats')
  return Number(/calls=(\d+)/.exec(stats?.cmdstat_evalsha ?? '')?.[1] ?? 0)
}

async function serving(store: Store): Promise<void> {
  await until('all serve', async () => (await nodesOf(store)).every(node => node.state === 'serving'))
}

test.concurrent('only the note of a vote is written, with a rising revision', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  await nodes.servers[0]?.call('PEXPIRE', 'holdfast:redlock:{:a}', '60000')
  const get = async (): Promise<string> => String(await nodes.servers[0]?.call('GET', 'holdfast:redlock:{:a}'))
  const before = await get()
  let last = 0
  for (const note of ['a much longer one', '', 'ö"\\']) {
    expect(await store.annotate({ ...claim, ttl: 60_000, note }, signal)).toBe(true)
    await until('node 0 has it', async () => (await lease(nodes, 0)).includes(JSON.stringify(note)))
    const [, number = ''] = /,(\d+)\] *$/.exec(await get()) ?? []
    expect(Number(number)).toBeGreaterThan(last)
    last = Number(number)
    expect((await get()).trimEnd()).toBe(before.replace('"at first"', () => `${JSON.stringify(note)},${number}`))
  }
  expect(await nodes.servers[0]?.call('PTTL', 'holdfast:redlock:{:a}')).toBeLessThanOrEqual(60_000)
})

test.concurrent('a node that missed a note does not show an older one if another node has the newer', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  nodes.proxies[2]?.up.drop()
  expect(await store.annotate({ ...claim, note: 'newer' }, signal)).toBe(true)
  nodes.proxies[2]?.up.pass()
  await serving(store)
  expect(await lease(nodes, 2)).toMatch(/ \["test","at first"\]$/)
  // That one answers first.
  nodes.proxies[0]?.up.drop()
  nodes.proxies[1]?.down.delay(50)
  expect(await look(store, { name: 'a' })).toMatchObject([{ note: 'newer', token: claim.token }])
  expect(await acquire(store, claimOf('a'))).toMatchObject({ held: false, holder: { note: 'newer' } })
})

test.concurrent('a stale copy of an older note does not replace a newer one', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  nodes.proxies[2]?.up.hold()
  expect(await store.annotate({ ...claim, note: 'older' }, signal)).toBe(true)
  // By another connection.
  const around = nodes.store(TRUSTED, nodes.servers)
  await serving(around)
  expect(await around.annotate({ ...claim, note: 'newer' }, signal)).toBe(true)
  await until('node 2 has it', async () => (await lease(nodes, 2)).includes('newer'))
  const written = await lease(nodes, 2)
  const before = await calls(nodes, 2)
  nodes.proxies[2]?.up.pass()
  await until('the other has come', async () => (await calls(nodes, 2)) > before)
  expect(await lease(nodes, 2)).toBe(written)
})

test.concurrent('a stale note is refused, and the lease is not reported as lost', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  const before = await Promise.all([0, 1, 2].map(index => lease(nodes, index)))
  for (const { up } of nodes.proxies) up.hold()
  const outcome = failureOf(store.annotate({ ...claim, ttl: 600, note: 'late' }, signal))
  await sleep(requestLimit(600) + 20)
  for (const { up } of nodes.proxies) up.pass()
  expect((await outcome).code).toBe('STORE_UNAVAILABLE')
  await serving(store)
  expect(await Promise.all([0, 1, 2].map(index => lease(nodes, index)))).toEqual(before)
})

test.concurrent('a node that lost the lease gets its latest note with it', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  const newer = { ...claim, note: 'newer' }
  await store.annotate({ ...claim, note: 'older' }, signal)
  await store.annotate(newer, signal)
  await nodes.servers[2]?.call('FLUSHALL')
  await until('it is set again', async () => {
    await store.renew(newer, signal)
    return (await nodes.holders('a'))[2] === claim.id
  })
  expect(await lease(nodes, 2)).toMatch(/ \["test","newer",1\]$/)
  // A renewal that is older than the note may restore an older note, which must not be shown.
  await nodes.servers[2]?.call('FLUSHALL')
  await until('it is set again', async () => {
    await store.renew(claim, signal)
    return (await nodes.holders('a'))[2] === claim.id
  })
  expect(await lease(nodes, 2)).toMatch(/ \["test","at first",1\]$/)
  expect(await look(store, { name: 'a' })).toMatchObject([{ note: 'newer' }])
  expect(await store.annotate({ ...claim, note: 'last' }, signal)).toBe(true)
  await until('all have it', async () => {
    const all = await Promise.all([0, 1, 2].map(index => lease(nodes, index)))
    return all.every(each => each.includes('last'))
  })
})

test.concurrent('a lease that a majority lost does not count as lost, because a renewal restores it', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = { ...(await heldByAll(nodes, store)), note: 'newer' }
  for (const index of [0, 2]) await nodes.servers[index]?.call('FLUSHALL')
  const error = await failureOf(store.annotate(claim, signal))
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  expect(error.message).toMatch(/localhost:\d+: it has forgotten the lease/)
  expect(await store.renew(claim, signal)).toMatchObject({ token: claim.token })
  expect(await store.annotate(claim, signal)).toBe(true)
})

test.concurrent('an expired lease gets no note, even if nobody acquired the name', async () => {
  await using nodes = await startNodes(3)
  const store = await nodes.connected()
  const claim = await heldByAll(nodes, store)
  for (const server of nodes.servers) await server.call('SETRANGE', 'holdfast:redlock:{:a}', '2', '1700000000000')
  const before = await lease(nodes, 0)
  expect(await store.annotate({ ...claim, note: 'late' }, signal)).toBe(false)
  expect(await lease(nodes, 0)).toBe(before)
})
