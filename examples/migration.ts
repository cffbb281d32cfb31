/**
 * One migration per deploy: all replicas of a new version start together. One migrates the database. The others wait, and
 * then find nothing left to do.
 *
 *     ./script/node examples/migration.ts
 *
 * The lease makes the others wait. Transactions make it correct even if a replica is paused in the middle: each step and
 * its version number are one transaction, which first reads the number.
 */
import { DatabaseSync } from 'node:sqlite'
import { createLocks, type Lease, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const STEPS = ['create table customer (id integer primary key)', 'alter table customer add column name text']

/** Each replica calls this before it serves. Rejects if it did not acquire the name within a minute. */
async function migrate(locks: Locks): Promise<number> {
  return await locks.using('migrations of app', { wait: 60_000, note: 'version 1.2.0' }, runMissingSteps)
}

/** Runs the missing steps. Returns their number. */
async function runMissingSteps(lease: Lease): Promise<number> {
  const database = new DatabaseSync('app.db', { timeout: 5_000 })
  try {
    let done = 0
    for (const [index, step] of STEPS.entries()) {
      lease.assertHeld() // a holder that lost its lease stops between two steps
      database.exec('begin immediate')
      const { user_version: version } = database.prepare('pragma user_version').get() ?? {}
      if (version === index) {
        database.exec(`${step}; pragma user_version = ${index + 1}`)
        done += 1
        console.log(`${lease.owner}: ${step}`)
      }
      database.exec('commit')
    }
    return done
  } finally {
    database.close() // rolls back a step that failed, so another replica can try
  }
}

const replicas = ['replica-1', 'replica-2', 'replica-3'].map(owner => createLocks(sqlite('leases.db'), { owner }))
const done = await Promise.all(replicas.map(migrate))
console.log(`${done.filter(steps => steps > 0).length} of ${replicas.length} replicas migrated`)
await Promise.all(replicas.map(locks => locks.close()))
