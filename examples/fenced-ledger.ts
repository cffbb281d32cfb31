/**
 * A ledger that refuses a holder that lost its lease and does not know it. One holder does not renew and writes too late:
 * the fence refuses its write. The ledger is a SQLite file, or PostgreSQL if DATABASE_URL is set (`npm i holdfast pg`).
 *
 *     ./script/node examples/fenced-ledger.ts
 *     DATABASE_URL=postgres://localhost/app ./script/node examples/fenced-ledger.ts
 */
import { DatabaseSync } from 'node:sqlite'
import { Pool } from 'pg'
import { type Holder, postgresFence } from '../src/fencing/postgres/index.ts' // in your project: 'holdfast/fencing/postgres'
import { sqliteFence } from '../src/fencing/sqlite/index.ts' // 'holdfast/fencing/sqlite'
import { createLocks, LeaseError } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const { DATABASE_URL } = process.env
const ledger = DATABASE_URL ? await inPostgres(DATABASE_URL) : inSqlite('ledger.db')
const locks = createLocks(sqlite('leases.db'))

// A holder is not always notified in time: its process may be paused, or its network down.
const slow = await locks.acquire('ledger', { ttl: 1_000, heartbeat: false })
await locks.using('ledger', async lease => {
  await ledger.book(lease, 'rent', -900)
  console.log('the next holder has booked the rent')
})
try {
  // Without the lease object, as in a paused process: this process would refuse a lease that it knows to be over.
  await ledger.book({ name: slow.name, token: slow.token }, 'rent', -900)
  console.log('the rent was paid twice')
} catch (error) {
  const { code, token = 0n, highest = 0n } = LeaseError.from(error) ?? {}
  if (code !== 'STALE_TOKEN') throw error
  console.log(`the first holder is refused: ${code}, and its token is lower: ${token < highest}`)
}
console.log(`the balance is ${await ledger.balance()}`)

await locks.close()
await ledger.close()

interface Ledger {
  book(lease: Holder, text: string, amount: number): Promise<unknown>
  balance(): Promise<number>
  close(): Promise<void>
}

function inSqlite(path: string): Ledger {
  const database = new DatabaseSync(path)
  const fence = sqliteFence(database)
  fence.install()
  database.exec('create table if not exists entry (text text not null, amount integer not null)')
  const insert = database.prepare('insert into entry values (?, ?)')
  return {
    book: async (lease, text, amount) => fence.transaction(lease, () => insert.run(text, amount)),
    balance: async () => Number(database.prepare('select sum(amount) as sum from entry').get()?.sum),
    close: async () => database.close(),
  }
}

async function inPostgres(url: string): Promise<Ledger> {
  const pool = new Pool({ connectionString: url })
  pool.on('error', error => console.error(error.message)) // an idle connection ended: the pool opens another
  const fence = postgresFence(pool)
  await fence.install() // or once, with the output of `holdfast fence sql`
  await pool.query('create table if not exists entry (text text not null, amount integer not null)')
  return {
    book: (lease, text, amount) =>
      fence.transaction(lease, client => client.query('insert into entry values ($1, $2)', [text, amount])),
    balance: async () => Number((await pool.query('select sum(amount) from entry')).rows[0].sum),
    close: () => pool.end(),
  }
}
