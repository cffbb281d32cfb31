/**
 * An endpoint that must not run twice: the client sends an idempotency key with each payment, and repeats the request
 * when no answer came. A unique key makes it correct. The lease makes a repeated request wait for the first one.
 *
 *     ./script/node examples/once-per-request.ts
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Lease, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const database = new DatabaseSync('payments.db')
database.exec(
  'create table if not exists payment (key text primary key, cents integer not null, receipt text not null)',
)
const find = database.prepare('select cents, receipt from payment where key = ?')
const insert = database.prepare('insert into payment values (?, ?, ?) on conflict (key) do nothing')

/** Pays once per key. A repeated request gets the receipt of the first one. */
async function pay(locks: Locks, key: string, cents: number): Promise<string> {
  const once = async (lease: Lease): Promise<string> => {
    const receipt = paid(key, cents) ?? (await charge(key, cents, lease.signal))
    insert.run(key, cents, receipt) // the unique key decides, also if the lease was lost meanwhile
    return paid(key, cents) ?? receipt
  }
  return await locks.using(`payment ${key}`, { wait: 5_000 }, once)
}

function paid(key: string, cents: number): string | undefined {
  const row = find.get(key)
  if (row && row.cents !== cents) throw new Error(`the key ${key} was used for another payment`)
  return row && String(row.receipt)
}

/** The payment provider gets the key too, because it must not charge twice either. */
async function charge(key: string, cents: number, signal: AbortSignal): Promise<string> {
  await sleep(50, undefined, { signal })
  console.log(`the provider charges ${cents} cents for ${key}`)
  return `receipt of ${key}`
}

// Three requests with one key reach two replicas at the same time.
const replicas = ['replica-1', 'replica-2'].map(owner => createLocks(sqlite('leases.db'), { owner }))
const key = `order-${Date.now()}`
const receipts = await Promise.all([...replicas, ...replicas.slice(0, 1)].map(locks => pay(locks, key, 900)))
console.log(`${receipts.length} requests, ${new Set(receipts).size} receipt`)
await Promise.all(replicas.map(locks => locks.close()))
database.close()
