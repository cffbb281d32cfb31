import { describe, expect, test } from 'vitest'
import type { RedisServer } from '../../../../lab/servers/redis.ts'
import { failureOf, look, signal } from '../../../../test/support.ts'
import { createLocks } from '../../../index.ts'
import { type Nodes, startNodes } from './support.ts'

const PAGES = 20

/** Servers with keys of another program, so that a search has many pages. */
async function startCrowded(): Promise<Nodes> {
  const nodes = await startNodes(3)
  const fill = `for number = 1, ${PAGES}000 do redis.call('SET', 'other:' .. number, '') end`
  await Promise.all(nodes.servers.map(server => server.call('EVAL', fill, '0')))
  return nodes
}

async function scansOf(server: RedisServer): Promise<number> {
  const { cmdstat_scan = 'calls=0' } = await server.info('commandstats')
  return Number(/calls=(\d+)/.exec(cmdstat_scan)?.[1])
}

describe.concurrent('among many keys of others', () => {
  test('a listing may take longer than a request', async () => {
    await using nodes = await startCrowded()
    const locks = createLocks(await nodes.connected())
    await using lease = await locks.acquire('a', { ttl: 30_000 })
    for (const { down } of nodes.proxies) down.delay(150)
    const records = await Array.fromAsync(locks.list())
    for (const { down } of nodes.proxies) down.pass()
    expect(records).toMatchObject([{ name: lease.name, state: 'held' }])
  })

  test('a listing asks before each further page, and ends if its caller wants no more', async () => {
    await using nodes = await startCrowded()
    const store = await nodes.connected()
    let asked = 0
    const enough = new Error('enough')
    const between = async (): Promise<void> => {
      asked += 1
      if (asked === 3) throw enough
    }
    expect(await failureOf(Array.fromAsync(store.inspect({ prefix: '', between }, signal)))).toBe(enough)
    expect(await Promise.all(nodes.servers.map(scansOf))).toEqual([4, 4, 4])
  })

  test('a listing that was aborted sends nothing more', async () => {
    await using nodes = await startCrowded()
    const store = await nodes.connected()
    const controller = new AbortController()
    const between = async (): Promise<void> => controller.abort(new Error('aborted'))
    const failure = await failureOf(Array.fromAsync(store.inspect({ prefix: '', between }, controller.signal)))
    expect(failure).toBe(controller.signal.reason)
    expect(await Promise.all(nodes.servers.map(scansOf))).toEqual([2, 2, 2])
  })

  test('a listing goes on without a server that fails meanwhile, and rejects without a majority', async () => {
    await using nodes = await startCrowded()
    const store = await nodes.connected()
    const locks = createLocks(store)
    await using lease = await locks.acquire('a', { ttl: 30_000 })
    for (const count of [1, 2]) {
      let asked = 0
      const between = async (): Promise<void> => {
        asked += 1
        if (asked === 2) for (const server of nodes.servers.slice(0, count)) await server.kill()
      }
      const listed = look(store, { prefix: '', between })
      if (count === 1) expect(await listed).toMatchObject([{ name: lease.name }])
      else expect(await failureOf(listed)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    }
    await nodes.heal()
  })
})
