import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApache } from '../../../lab/servers/apache.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { countRoundTrips } from '../../../test/round-trips.ts'
import { fenceHeaders, fenceOf, inTurn, nodeFence } from '../http/index.ts'
import { httpObjects, objectFence } from '../objects/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { holder } from './support.ts'

// What a fence adds to a write, where that goes over a network; SQLite and files ask nobody.

type Write = () => Promise<unknown>

const roundTrips = countRoundTrips()
const lease = holder('a', 7)

/** Of a write as it is the second time: connections are open then, and scripts and statements known. */
async function tripsOf(write: Write): Promise<number> {
  await write()
  const before = roundTrips()
  await write()
  return roundTrips() - before
}

async function expectTrips(trips: { plain: number; fenced: number }, plain: Write, fenced: Write): Promise<void> {
  expect({ plain: await tripsOf(plain), fenced: await tripsOf(fenced) }).toEqual(trips)
}

describe('Redis', () => {
  let client: Redis
  let stop: Write
  beforeAll(async () => {
    const server = await startRedis()
    client = new Redis(server.port)
    stop = async () => {
      client.disconnect()
      await server.stop()
    }
  })
  afterAll(() => stop())

  test('a fenced command or script takes no additional round trip', async () => {
    await using fence = redisFence(client)
    const script = "return redis.call('rpush', KEYS[1], ARGV[1])"
    await expectTrips(
      { plain: 1, fenced: 1 },
      () => client.set('a', '1'),
      () => fence.set(lease, 'a', '1'),
    )
    await expectTrips(
      { plain: 1, fenced: 1 },
      () => client.eval(script, 1, 'list', '1'),
      () => fence.eval(lease, { script, keys: ['list'], args: ['1'] }),
    )
  })

  describe('an HTTP service that writes there', () => {
    /** Serves requests by path. */
    async function tripsTo(
      services: Record<string, (request: IncomingMessage, response: ServerResponse) => Promise<unknown>>,
    ): Promise<Record<string, number>> {
      const server = createServer(async (request, response) => {
        await services[request.url?.slice(1) ?? '']?.(request, response)
        response.end()
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const trips: Record<string, number> = {}
      for (const path of Object.keys(services))
        trips[path] = await tripsOf(async () => {
          const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: fenceHeaders(lease) })
          expect(await response.text()).toBe('')
        })
      server.close()
      server.closeAllConnections()
      return trips
    }

    test('takes one round trip for separate marks, and none for the check in the write', async () => {
      await using fence = redisFence(client)
      const { marks } = fence
      const set = (): Promise<unknown> => client.set('a', '1')
      const [door, reader] = [nodeFence(marks), nodeFence(null)]
      const trips = await tripsTo({
        plain: set,
        'at-the-door': async (request, response) => (await door(request, response)) && set(),
        'in-turn': async (request, response) =>
          (await reader(request, response)) && inTurn(fenceOf(request), marks, set),
        'in-the-write': async (request, response) =>
          (await reader(request, response)) && fence.set(fenceOf(request), 'a', '1'),
      })
      expect(trips).toEqual({ plain: 2, 'at-the-door': 3, 'in-turn': 3, 'in-the-write': 2 })
    })
  })
})

describe('PostgreSQL', () => {
  const insert = "insert into entry values ('a')"
  let url: string
  let stop: Write
  beforeAll(async () => {
    const server = await startPostgres()
    url = server.url()
    stop = () => server.stop()
    const pool = new Pool({ connectionString: url })
    await pool.query('create table entry (line text)')
    await postgresFence(pool).install()
    await pool.end()
  })
  afterAll(() => stop())

  test('a fenced transaction of pg takes no additional round trip', async () => {
    const pool = new Pool({ connectionString: url })
    const plain = async (): Promise<void> => {
      const client = await pool.connect()
      for (const statement of ['begin', insert, 'commit']) await client.query(statement)
      client.release()
    }
    const fence = postgresFence(pool)
    await expectTrips({ plain: 3, fenced: 3 }, plain, () => fence.transaction(lease, client => client.query(insert)))
    await pool.end()
  })

  test('a fenced transaction of postgres.js takes one more', async () => {
    const sql = postgresJs(url, { max: 1, onnotice: () => {} })
    const fence = postgresFence(sql)
    await expectTrips(
      { plain: 3, fenced: 4 },
      () => sql.begin(transaction => transaction.unsafe(insert)),
      () => fence.transaction(lease, transaction => transaction.unsafe(insert)),
    )
    await sql.end()
  })
})

test('a fenced object takes a read before its write', async () => {
  const server = await startApache()
  const fence = objectFence(httpObjects())
  const put = async (): Promise<void> => {
    const response = await fetch(server.url('plain'), { method: 'PUT', body: 'a' })
    await response.arrayBuffer()
  }
  await expectTrips({ plain: 1, fenced: 2 }, put, () => fence.put(lease, server.url('fenced'), 'a'))
  await server.stop()
})
