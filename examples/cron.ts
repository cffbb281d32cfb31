/**
 * A cron job on many replicas: the timers of all replicas fire at about the same time, and one replica runs the job.
 *
 *     ./script/node examples/cron.ts
 *
 * `once` runs the job unless it runs elsewhere, or has succeeded within the last `within` ms. A run that fails or dies does
 * not count: the next tick runs it, on any replica. For a command, use `holdfast run --skip-if-ran-since 12h`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Lease, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const HOUR = 3_600_000 // milliseconds

// One per replica. Between machines, use redis(client) of 'holdfast/redis'.
const replicas = ['replica-1', 'replica-2', 'replica-3'].map(owner => createLocks(sqlite('leases.db'), { owner }))

/** The timer of each replica calls this, once a day. `within` is half of that. */
async function onTick(locks: Locks): Promise<void> {
  const outcome = await locks.once('daily-report', { within: 12 * HOUR }, report)
  if (!outcome.ran) console.log(`not run: ${outcome.why} by ${outcome.holder?.owner}`)
}

async function report({ owner, signal }: Lease): Promise<void> {
  console.log(`${owner} runs daily-report`)
  await sleep(50, undefined, { signal }) // your work: it ends early if the lease is lost
}

// All timers fire now, except one whose clock is behind.
await Promise.all(
  replicas.map(async (locks, i) => {
    if (i === 2) await sleep(200)
    await onTick(locks)
  }),
)
await Promise.all(replicas.map(locks => locks.close()))
