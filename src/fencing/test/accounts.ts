import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Pool } from 'pg'
import postgresJs from 'postgres'
import type { Holder } from '../mark.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { sqliteFence } from '../sqlite/index.ts'

/** A number that several processes read and set, kept in one engine. */
export interface Account {
  /** Makes it, with nothing in it. */
  create(): Promise<unknown>
  read(): Promise<number>
  /** Sets it. Writers with a lease are fenced. */
  write(balance: number, lease?: Holder): Promise<unknown>
  close(): Promise<unknown>
}

const CREATE = 'create table account (balance integer not null); insert into account values (0)'

export const accounts: Readonly<Record<string, (place: string) => Account>> = {
  postgres(url) {
    const pool = new Pool({ connectionString: url })
    const fence = postgresFence(pool)
    return {
      create: async () => Promise.all([fence.install(), pool.query(CREATE)]),
      read: async () => (await pool.query('select balance from account')).rows[0].balance,
      write: (balance, lease) => {
        const set = { text: 'update account set balance = $1', values: [balance] }
        return lease ? fence.transaction(lease, client => client.query(set)) : pool.query(set)
      },
      close: () => pool.end(),
    }
  },
  'postgres.js'(url) {
    const sql = postgresJs(url, { onnotice: () => {} })
    const fence = postgresFence(sql)
    return {
      create: async () => Promise.all([fence.install(), sql.unsafe(CREATE)]),
      read: async () => Number((await sql`select balance from account`)[0]?.balance),
      write: async (balance, lease) => {
        if (lease) return fence.transaction(lease, own => own`update account set balance = ${balance}`)
        return sql`update account set balance = ${balance}`
      },
      close: () => sql.end(),
    }
  },
  mysql(uri) {
    const pool = createPool({ uri })
    const fence = mysqlFence(pool)
    return {
      async create() {
        await fence.install()
        for (const statement of CREATE.split(';')) await pool.query(statement)
      },
      read: async () => Number((await pool.query<RowDataPacket[]>('select balance from account'))[0][0]?.balance),
      write: async (balance, lease) => {
        const set = `update account set balance = ${balance}`
        return lease ? fence.transaction(lease, connection => connection.query(set)) : pool.query(set)
      },
      close: () => pool.end(),
    }
  },
  sqlite(path) {
    const database = new DatabaseSync(path)
    database.exec('pragma busy_timeout = 5000')
    const fence = sqliteFence(database)
    const set = (balance: number): void => database.exec(`update account set balance = ${balance}`)
    return {
      async create() {
        fence.install()
        database.exec(CREATE)
      },
      read: async () => Number(database.prepare('select balance from account').get()?.balance),
      write: async (balance, lease) => (lease ? fence.transaction(lease, () => set(balance)) : set(balance)),
      close: async () => database.close(),
    }
  },
  redis(url) {
    const client = new Redis(url)
    const fence = redisFence(client)
    return {
      create: () => client.set('account', '0'),
      read: async () => Number(await client.get('account')),
      write: async (balance, lease) => {
        if (lease) return fence.set(lease, 'account', String(balance))
        return client.set('account', String(balance))
      },
      async close() {
        await fence.close()
        client.disconnect()
      },
    }
  },
}
