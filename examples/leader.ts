/**
 * A consumer that runs on one replica at a time: the leader takes orders from a queue, the others wait.
 *
 *     ./script/node examples/leader.ts
 *
 * When a replica is stopped (here by `stop.abort()`, in a service by SIGTERM), its work ends before the next one leads. A
 * fence protects the orders: a leader that was paused for too long cannot take one. The note of the lease shows the
 * progress: `holdfast inspect "order consumer"`.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteFence } from '../src/fencing/sqlite/index.ts' // in your project: 'holdfast/fencing/sqlite'
import { createLocks, type Lease } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const ORDERS = 6
const queue = new DatabaseSync('queue.db')
queue.exec('create table if not exists done (number integer primary key, by text)')
const fence = sqliteFence(queue)
fence.install()
const insert = queue.prepare('insert into done (by) values (?) returning number')

const stops = [new AbortController(), new AbortController()] // in a service: process.once('SIGTERM', () => stop.abort())

/** The work of the leader. It runs until the lease is lost or the replica is stopped. */
async function consume(lease: Lease): Promise<void> {
  console.log(`${lease.owner} leads`)
  while (!lease.signal.aborted) {
    const number = Number(fence.transaction(lease, () => insert.get(lease.owner)?.number))
    console.log(`order ${number} by ${lease.owner}`)
    await lease.annotate(`${number} orders done`)
    if (number >= ORDERS / 2) stops[0]?.abort()
    if (number >= ORDERS) stops[1]?.abort()
    await sleep(10, undefined, { signal: lease.signal }).catch(() => {})
  }
}

const replicas = ['replica-1', 'replica-2'].map(owner => createLocks(sqlite('leases.db'), { owner, ttl: 5_000 }))
const runs = replicas.map(async (locks, i) => {
  await sleep(200 * i) // the first leads first
  await locks.election('order consumer').run({ signal: stops[i]?.signal }, consume)
  await locks.close()
})
await Promise.all(runs)
queue.close()
