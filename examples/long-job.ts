/**
 * A job that outlives a deploy: it stops at SIGTERM, and the next process continues where it stopped. Progress and
 * results are written in one fenced transaction, so no invoice is written twice or left out.
 *
 *     ./script/node examples/long-job.ts
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteFence } from '../src/fencing/sqlite/index.ts' // in your project: 'holdfast/fencing/sqlite'
import { createLocks, type Locks } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const JOB = 'monthly invoices'
const ORDERS = 6
const database = new DatabaseSync('invoices.db')
const fence = sqliteFence(database)
fence.install()
database.exec('create table if not exists invoice (number integer primary key, by text)')
const last = database.prepare('select coalesce(max(number), 0) as number from invoice')
const insert = database.prepare('insert into invoice values (?, ?)')

const stops = [new AbortController(), new AbortController()] // in a service: process.once('SIGTERM', () => stop.abort())

/** Writes the missing invoices. Resolves to false if `stop` aborted before the last one. */
async function writeInvoices(locks: Locks, stop?: AbortSignal): Promise<boolean> {
  return await locks.using(
    JOB,
    { maxHold: 6 * 60 * 60_000 }, // a job that hangs loses the lease after six hours
    async lease => {
      fence.touch(lease) // from here on no earlier holder can write, so what is read below stays true
      for (let number = Number(last.get()?.number) + 1; number <= ORDERS; number += 1) {
        if (stop?.aborted) return false
        await sleep(20, undefined, { signal: lease.signal }) // in a real job: compute the invoice
        fence.transaction(lease, () => insert.run(number, lease.owner))
        console.log(`invoice ${number} by ${lease.owner}`)
        if (number === ORDERS / 2) stops[0]?.abort() // the deploy of this sample
      }
      return true
    },
  )
}

// A deploy: the new version already waits when the old version gets SIGTERM.
const versions = ['version-1', 'version-2'].map(owner => createLocks(sqlite('leases.db'), { owner }))
const finished = await Promise.all(
  versions.map(async (locks, i) => {
    await sleep(200 * i) // the old version is first
    return await writeInvoices(locks, stops[i]?.signal)
  }),
)
console.log(`finished: version-1 ${finished[0]}, version-2 ${finished[1]}`)
await Promise.all(versions.map(locks => locks.close()))
database.close()
