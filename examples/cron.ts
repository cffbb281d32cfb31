/**
 * A cron job on many replicas: the timers of all replicas fire at about the same time, and one replica runs the job.
 *
 *     ./script/node examples/cron.ts
 *
 * Each run has its own name and a lease with a fixed term. The lease is neither renewed nor released, so a replica whose
 * clock is behind cannot run the job again. A run that crashes is not repeated during its term. If another replica should
 * take over instead, renew and release the lease, as `holdfast run` does, and let the job find out what is left to do, as
 * invoices/job.ts does. For a command, use `holdfast run --at-least 1m --skip-if-ran-since 20h`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

// Milliseconds: longer than the job takes, and than the clocks of the replicas differ.
const TERM = 10 * 60_000

// One per replica. Between machines, use redis(client) of 'holdfast/redis'.
const replicas = ['replica-1', 'replica-2', 'replica-3'].map(owner => createLocks(sqlite('leases.db'), { owner }))

/** The timer of each replica calls this. `run` is the name of the run. */
async function onTick(locks: Locks, run: string): Promise<void> {
  const lease = await locks.tryAcquire(`daily-report ${run}`, { ttl: TERM, heartbeat: false })
  if (!lease) return // another replica runs it, or ran it
  console.log(`${lease.owner} runs daily-report ${run}`)
  await report(lease.signal)
}

async function report(signal: AbortSignal): Promise<void> {
  await sleep(50, undefined, { signal })
}

// All timers fire now, except one whose clock is behind.
const run = process.argv[2] ?? new Date().toISOString()
await Promise.all(
  replicas.map(async (locks, i) => {
    if (i === 2) await sleep(200)
    await onTick(locks, run)
  }),
)
console.log('three replicas, one run')
await Promise.all(replicas.map(locks => locks.close({ grace: 0 }))) // a lease that is not released ends with its term
