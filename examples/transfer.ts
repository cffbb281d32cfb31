/**
 * A transfer between two accounts: both leases are held together, and one transaction shows both tokens. Two processes
 * transfer in opposite directions at the same time, without a deadlock.
 *
 *     ./script/node examples/transfer.ts
 */
import { DatabaseSync } from 'node:sqlite'
import { sqliteFence } from '../src/fencing/sqlite/index.ts' // in your project: 'holdfast/fencing/sqlite'
import { createLocks, type Locks } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const bank = new DatabaseSync('bank.db')
bank.exec('create table if not exists account (name text primary key, cents integer not null)')
bank.exec("insert or ignore into account values ('anna', 10000), ('ben', 10000)")
const fence = sqliteFence(bank)
fence.install()
const read = bank.prepare('select cents from account where name = ?')
const write = bank.prepare('update account set cents = cents + ? where name = ?')

async function transfer(locks: Locks, from: string, to: string, cents: number): Promise<boolean> {
  const both = locks.all([`account:${from}`, `account:${to}`])
  return both.using({ wait: 10_000 }, async set => {
    fence.touch(set) // from here on every older holder of either account is refused
    const balance = Number(read.get(from)?.cents)
    if (balance < cents || !(await isAllowed(from, to, set.signal))) return false
    fence.transaction(set, () => {
      write.run(-cents, from)
      write.run(cents, to)
    })
    return true
  })
}

/** A call that takes time: the reason why a transaction alone would not do. */
async function isAllowed(_from: string, _to: string, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted()
  return true
}

const processes = [createLocks(sqlite('leases.db')), createLocks(sqlite('leases.db'))]
const transfers = Array.from({ length: 10 }, (_, i) => {
  const locks = processes[i % 2] as Locks
  return i % 2 === 0 ? transfer(locks, 'anna', 'ben', 3_000) : transfer(locks, 'ben', 'anna', 2_000)
})
const done = await Promise.all(transfers)
const sum = bank.prepare('select sum(cents) as cents, min(cents) as least from account').get()
console.log(`${done.length} transfers were tried`)
console.log(`there are ${Number(sum?.cents) / 100} in both accounts, and none is overdrawn: ${Number(sum?.least) >= 0}`)

for (const locks of processes) await locks.close()
bank.close()
