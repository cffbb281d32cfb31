import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../../lab/servers/redis.ts'
import { createLocks } from '../create-locks.ts'
import { redlock } from '../stores/redlock/index.ts'
import { dashboard } from './dashboard.ts'

let servers: RedisServer[]
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()])
})
afterAll(() => Promise.all(servers.map(server => server.stop())))

test('the page of a name shows the servers of a Redlock, and which of them do not answer', async () => {
  const clients = servers.map(({ port }) => new Redis(port, { lazyConnect: true }))
  for (const client of clients) client.on('error', () => {})
  const locks = createLocks(redlock(clients, { maxTtl: 60_000 }), { ttl: 10_000 })
  const board = dashboard(locks, { authorize: () => 'read' })
  onTestFinished(async () => {
    await board[Symbol.asyncDispose]()
    await locks.close({ grace: 0 })
    for (const client of clients) client.disconnect()
  })
  await servers[2]?.stop()
  const answer = await board.fetch(new Request('http://localhost/?api=name&name=nightly'))
  const { nodes } = (await answer.json()) as { nodes: { state: string }[] }
  expect(nodes).toHaveLength(3)
  expect(nodes[2]).toMatchObject({ state: 'unavailable', reason: expect.any(String) })
})
