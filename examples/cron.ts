/**
 * A cron job on many replicas: each replica's timer fires at about the same moment, and one of them runs the job.
 *
 *     ./script/node examples/cron.ts
 *
 * The name of the lease is the name of this one run, and its term is fixed: it is neither renewed nor released, so that
 * a replica whose clock is behind cannot run the job again when the first has finished. A run that crashes is not
 * repeated before its term is over. For a job that should be taken over instead, renew and release, as
 * `holdfast run` does, and let it find out what is left to do, as invoices/job.ts does. For a command,
 * `holdfast run --at-least 1m --skip-if-ran-since 20h` is all that is needed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

// Longer than the job may take, and than the replicas' clocks are apart.
const TERM = 10 * 60_000

// One per replica, for as long as it lives. Between machines: redis(client) of 'holdfast/redis'.
const replicas = ['replica-1', 'replica-2', 'replica-3'].map(owner => createLocks(sqlite('leases.db'), { owner }))

/** What each replica's timer calls; `run` names this one run. */
async function onTick(locks: Locks, run: string): Promise<void> {
  const lease = await locks.tryAcquire(`daily-report ${run}`, { ttl: TERM, heartbeat: false })
  if (!lease) return // it is, or was, another replica's
  console.log(`${lease.owner} runs daily-report ${run}`)
  await report(lease.signal)
}

async function report(signal: AbortSignal): Promise<void> {
  await sleep(50, undefined, { signal })
}

// The same moment everywhere, except that the clock of one is late.
const run = process.argv[2] ?? new Date().toISOString()
await Promise.all(
  replicas.map(async (locks, i) => {
    if (i === 2) await sleep(200)
    await onTick(locks, run)
  }),
)
console.log('three replicas, one run')
await Promise.all(replicas.map(locks => locks.close({ grace: 0 }))) // what is not released ends with its term
