import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Pool } from 'pg'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { Stack } from '../../../test/harnesses/stack.ts'
import { testFence } from '../../testing/index.ts'
import type { FenceOptions } from '../fence.ts'
import type { Holder, Holders } from '../mark.ts'
import type { KeptMarks } from '../marks.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { sqliteFence } from '../sqlite/index.ts'

/** A list of entries behind a fence. */
export interface Bank {
  /** Adds an entry behind the fence. `during` runs between the check and the commit. */
  add(holders: Holder | Holders, during?: () => void): Promise<unknown>
  touch(holders: Holder | Holders): Promise<unknown>
  entries(): Promise<number>
  readonly marks: KeptMarks
  /** The same with other options. */
  with(options: FenceOptions): { touch(holders: Holder | Holders): Promise<unknown> }
  close(): Promise<unknown>
}

const CREATE = 'create table entry (id integer)'
const INSERT = 'insert into entry values (1)'

export const banks: Readonly<Record<string, () => Promise<Bank>>> = {
  async postgres() {
    const stack = new Stack()
    const server = stack.use(await startPostgres())
    const pool = stack.adopt(new Pool({ connectionString: server.url() }), own => own.end())
    const fence = postgresFence(pool)
    await fence.install()
    await pool.query(CREATE)
    return {
      add: (holders, during) =>
        fence.transaction(holders, async client => {
          await client.query(INSERT)
          during?.()
        }),
      touch: holders => fence.touch(holders),
      with: options => postgresFence(pool, options),
      entries: async () => (await pool.query('select from entry')).rowCount ?? 0,
      marks: fence.marks,
      close: () => stack.end(),
    }
  },
  async mysql() {
    const stack = new Stack()
    const server = stack.use(await startMariaDb())
    const pool = stack.adopt(createPool({ uri: server.url() }), own => own.end())
    const fence = mysqlFence(pool)
    await fence.install()
    await pool.query(CREATE)
    return {
      add: (holders, during) =>
        fence.transaction(holders, async connection => {
          await connection.query(INSERT)
          during?.()
        }),
      touch: holders => fence.touch(holders),
      with: options => mysqlFence(pool, options),
      entries: async () => (await pool.query<RowDataPacket[]>('select 1 from entry'))[0].length,
      marks: fence.marks,
      close: () => stack.end(),
    }
  },
  async sqlite() {
    const database = new DatabaseSync(':memory:')
    const fence = sqliteFence(database)
    fence.install()
    database.exec(CREATE)
    return {
      add: async (holders, during) =>
        fence.transaction(holders, () => {
          database.exec(INSERT)
          during?.()
        }),
      touch: async holders => fence.touch(holders),
      with: options => ({ touch: async holders => sqliteFence(database, options).touch(holders) }),
      entries: async () => database.prepare('select 1 from entry').all().length,
      marks: fence.marks,
      close: async () => database.close(),
    }
  },
  async testFence() {
    const list: number[] = []
    const fence = testFence({ transaction: list })
    return {
      add: (holders, during) =>
        fence.transaction(holders, async own => {
          during?.()
          own.push(1)
        }),
      touch: holders => fence.touch(holders),
      with: ({ epoch = 0, resource = '' }) => ({
        touch: async held => {
          const { name: _name, token, ...rest } = held as Holder
          await fence.marks.raise(resource, { ...rest, epoch, token: BigInt(token) })
        },
      }),
      entries: async () => list.length,
      marks: fence.marks,
      close: async () => {},
    }
  },
  async redis() {
    const stack = new Stack()
    const server = stack.use(await startRedis())
    const client = stack.adopt(new Redis(server.port), own => own.disconnect())
    const fence = stack.use(redisFence(client))
    const script = "return redis.call('rpush', KEYS[1], ARGV[1])"
    return {
      add: holders => fence.eval(holders, { script, keys: ['{bank}:entries'], args: ['1'] }),
      touch: holders => fence.touch(holders, '{bank}:entries'),
      with: options => {
        const other = stack.use(redisFence(client, options))
        return { touch: holders => other.touch(holders, '{bank}:entries') }
      },
      entries: () => client.llen('{bank}:entries'),
      marks: fence.marks,
      close: () => stack.end(),
    }
  },
}
