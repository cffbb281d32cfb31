/**
 * One migration per deploy: all replicas of a new version start together, one of them migrates the database, and the
 * others wait for it and then find nothing left to do.
 *
 *     ./script/node examples/migration.ts
 *
 * The lease keeps the others out of the way. What makes it right even if a replica stands still in the middle is that
 * each step and the number of the version are one transaction, which begins with a look at that number.
 */
import { DatabaseSync } from 'node:sqlite'
import { createLocks, type Lease, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const STEPS = ['create table customer (id integer primary key)', 'alter table customer add column name text']

/** What each replica does before it serves; rejects if the name was not had within a minute. */
async function migrate(locks: Locks): Promise<number> {
  return await locks.using('migrations of app', bringUpToDate, { wait: 60_000, note: 'version 1.2.0' })
}

/** Carries out the steps that are missing; answers how many. */
async function bringUpToDate(lease: Lease): Promise<number> {
  const database = new DatabaseSync('app.db', { timeout: 5_000 })
  let done = 0
  for (const [index, step] of STEPS.entries()) {
    lease.assertHeld() // between two steps, so that a holder that was replaced stops early
    database.exec('begin immediate')
    const { user_version: version } = database.prepare('pragma user_version').get() ?? {}
    if (version === index) {
      database.exec(`${step}; pragma user_version = ${index + 1}`)
      done += 1
      console.log(`${lease.owner}: ${step}`)
    }
    database.exec('commit')
  }
  database.close()
  return done
}

const replicas = ['replica-1', 'replica-2', 'replica-3'].map(owner => createLocks(sqlite('leases.db'), { owner }))
const done = await Promise.all(replicas.map(migrate))
console.log(`${done.filter(steps => steps > 0).length} of ${replicas.length} replicas migrated`)
await Promise.all(replicas.map(locks => locks.close()))
