import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { compareMarks, type Mark } from '../../src/fencing/mark.ts'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import { redisFence } from '../../src/fencing/redis/index.ts'
import { sqliteFence } from '../../src/fencing/sqlite/index.ts'
import { LeaseError } from '../../src/index.ts'
import { newFolder } from '../../src/lab/servers/folder.ts'
import { startPostgres } from '../../src/lab/servers/postgres.ts'
import { startRedis } from '../../src/lab/servers/redis.ts'

const WRITERS = 1_000

/** A log that writers append their marks to; each appends what it shows, or is refused. */
interface Log extends AsyncDisposable {
  append(resource: string, mark: Mark, pause: () => Promise<void>): Promise<unknown>
  read(resource: string): Promise<Mark[]>
}

const parse = (line: string): Mark => {
  const [lineage = '', token = ''] = line.split(':')
  return { lineage: Number(lineage), token: BigInt(token) }
}

const logs: Readonly<Record<string, () => Promise<Log>>> = {
  async postgres() {
    const server = await startPostgres({ config: { fsync: 'off' } })
    const pool = new Pool({ connectionString: server.url(), max: 16 })
    await postgresFence(pool).install()
    await pool.query('create table log (id serial primary key, resource text, line text)')
    return {
      append: (resource, { lineage, token }, pause) =>
        postgresFence(pool, { resource, lineage }).transaction({ name: 'any', token }, async client => {
          await pause()
          const values = [resource, `${lineage}:${token}`]
          await client.query({ text: 'insert into log (resource, line) values ($1, $2)', values })
        }),
      async read(resource) {
        const { rows } = await pool.query('select line from log where resource = $1 order by id', [resource])
        return rows.map(({ line }) => parse(line))
      },
      async [Symbol.asyncDispose]() {
        await pool.end()
        await server.stop()
      },
    }
  },
  async sqlite() {
    const path = join(newFolder('crowd'), 'log.db')
    const databases = Array.from({ length: 4 }, () => new DatabaseSync(path))
    for (const database of databases) database.exec('pragma journal_mode = wal; pragma synchronous = off')
    const [first] = databases as [DatabaseSync]
    sqliteFence(first).install()
    first.exec('create table log (id integer primary key, resource text, line text)')
    let turn = 0
    return {
      async append(resource, { lineage, token }, pause) {
        await pause()
        const database = databases[turn++ % databases.length] as DatabaseSync
        const insert = database.prepare('insert into log (resource, line) values (?, ?)')
        const fence = sqliteFence(database, { resource, lineage })
        fence.transaction({ name: 'any', token }, () => insert.run(resource, `${lineage}:${token}`))
      },
      async read(resource) {
        const rows = first.prepare('select line from log where resource = ? order by id').all(resource)
        return rows.map(({ line }) => parse(String(line)))
      },
      async [Symbol.asyncDispose]() {
        for (const database of databases) database.close()
      },
    }
  },
  async redis() {
    const server = await startRedis()
    const client = new Redis(server.port)
    const fences = [0, 1, 2, 3].map(lineage => redisFence(client, { lineage }))
    return {
      async append(resource, { lineage, token }, pause) {
        await pause()
        await fences[lineage]?.fencedEval(
          { name: resource, token },
          {
            script: "return redis.call('rpush', KEYS[1], ARGV[1])",
            keys: [resource],
            args: [`${lineage}:${token}`],
          },
        )
      },
      read: async resource => (await client.lrange(resource, 0, -1)).map(parse),
      async [Symbol.asyncDispose]() {
        for (const fence of fences) await fence.close()
        client.disconnect()
        await server.stop()
      },
    }
  },
}

/** How long each writer dreams before it shows its mark, and while it writes; in milliseconds. */
const pauses = fc.record({
  before: fc.integer({ min: 0, max: 40 }),
  within: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 5),
})

/** Holders come one after the other, about 5 in each millisecond, where a number of a script has no digit left. */
function markOf(turn: number): Mark {
  return { lineage: Math.floor(turn / 300), token: 2n ** 53n - 150n + BigInt(turn % 300) }
}

describe.each(Object.entries(logs))('a thousand writers that pause wherever they like, over %s', (_name, open) => {
  test('write in the order of their marks: nobody after one that is newer', async () => {
    await using log = await open()
    let runs = 0
    const property = fc.asyncProperty(fc.array(pauses, { minLength: WRITERS, maxLength: WRITERS }), async writers => {
      runs += 1
      const resource = `run ${runs}`
      const refused: Mark[] = []
      await Promise.all(
        writers.map(async ({ before, within }, turn) => {
          const mark = markOf(turn)
          await sleep(turn / 5 + before)
          try {
            await log.append(resource, mark, () => (within ? sleep(within) : Promise.resolve()))
          } catch (error) {
            if (!LeaseError.is(error) || error.code !== 'STALE_TOKEN') throw error
            refused.push(mark)
          }
        }),
      )
      const written = await log.read(resource)
      expect(written.toSorted(compareMarks)).toEqual(written)
      expect(written.length + refused.length).toBe(WRITERS)
      expect(written.at(-1)).toEqual(markOf(WRITERS - 1))
      expect(written.length).toBeGreaterThan(5)
    })
    await fc.assert(property, { numRuns: 3, endOnFailure: true })
  }, 60_000)
})

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
