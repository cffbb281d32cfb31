import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { expect, test } from 'vitest'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { type PostgresClient, postgresFence } from '../../src/fencing/postgres/index.ts'
import { redisFence } from '../../src/fencing/redis/index.ts'
import { holder } from '../../src/fencing/test/support.ts'
import { failureOf } from '../support.ts'

/** Milliseconds of tolerance for a busy machine. */
const SLACK = 5_000

const page = readFileSync(join(import.meta.dirname, '../../docs/operations/time-limits.md'), 'utf8')

/** The documented limit of a fence's call in milliseconds, and its error code. */
function row(call: string): { limit: number; code: string } {
  const line = page.split('\n').find(each => each.startsWith(`| ${call} |`)) ?? ''
  const [, seconds, code = ''] = /\| (\d+) s \| `([A-Z_]+)` \|$/.exec(line) ?? []
  return { limit: Number(seconds) * 1_000, code }
}

/** Expects the call to reject with the documented code, and in time. */
async function expectRow(call: string, work: () => unknown): Promise<void> {
  const { limit, code } = row(call)
  const began = performance.now()
  const error = await failureOf(Promise.resolve(work()))
  expect(error, call).toMatchObject({ code })
  expect(performance.now() - began, call).toBeLessThan(limit + SLACK)
}

const drivers: Readonly<Record<string, (url: string) => PostgresClient | Promise<PostgresClient>>> = {
  'pg Pool': url => {
    const pool = new Pool({ connectionString: url })
    pool.on('error', () => {})
    return pool
  },
  'pg Client': async url => {
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    return client
  },
  // Nothing handles the failure of the query for array types that postgres.js sends over each new connection.
  'postgres.js': url => postgresJs(url, { fetch_types: false }),
}

const COMMIT = '`postgresFence`: `transaction`, its commit'
const BEGIN = '`postgresFence`: `transaction`, until the work begins'
const MARKS = '`postgresFence`: `touch`, `marks`'

test.concurrent.each(Object.keys(drivers))(
  'no call of postgresFence over %s waits longer than docs/operations/time-limits.md says',
  {
    timeout: 180_000,
  },
  async name => {
    const server = await startPostgres()
    try {
      const open = drivers[name] as (typeof drivers)[string]
      const [committing, others] = [await open(server.url()), await open(server.url())]
      const [fence, second] = [postgresFence(committing), postgresFence(others)]
      await fence.install()
      await second.touch(holder('a', 1)) // connects
      const paused = Promise.withResolvers<void>()
      const work = (): Promise<void> => server.pause().then(paused.resolve)
      const commit = expectRow(COMMIT, () => fence.transaction(holder('b', 1), work))
      await paused.promise
      await expectRow(BEGIN, () => second.transaction(holder('a', 1), async () => {}))
      await expectRow(MARKS, () => second.touch(holder('a', 1)))
      await commit
    } finally {
      server.resume()
      await server.stop()
    }
  },
)

test.concurrent('no call of redisFence waits longer than docs/operations/time-limits.md says', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  const fence = redisFence(client)
  try {
    await fence.set(holder('a', 1), 'key', 'value')
    await server.pause()
    await expectRow('`redisFence`: every call', () => fence.set(holder('a', 1), 'key', 'value'))
  } finally {
    server.resume()
    await fence.close()
    client.disconnect()
    await server.stop()
  }
})
