/**
 * A consumer that runs on one replica at a time: the leader takes orders from a queue, the others wait to take over.
 *
 *     ./script/node examples/leader.ts
 *
 * A replica that is told to stop (here `stop.abort()`, in a service SIGTERM) ends its work first, then the next one leads.
 * What the leader has done is remembered under its fencing token, so that one which was paused for too long, and does not
 * know it, cannot do an order again.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, type Lease, LeaseError } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite.ts' // 'holdfast/sqlite'

const ORDERS = 6
const queue = new DatabaseSync('queue.db')
queue.exec(`
  create table if not exists done (number integer primary key, by text);
  create table if not exists fence (resource text primary key, highest integer not null);
  insert or ignore into fence values ('orders', 0)
`)

/** Takes the next order, unless a newer leader has taken one; answers its number. */
function take({ token, owner }: Lease): number {
  queue.exec('begin immediate')
  try {
    const raise = queue.prepare("update fence set highest = ?1 where resource = 'orders' and highest <= ?1")
    if (raise.run(token).changes === 0) throw new LeaseError('STALE_TOKEN', 'a newer leader has taken an order')
    const { number } = queue.prepare('insert into done (by) values (?) returning number').get(owner) ?? {}
    queue.exec('commit')
    return Number(number)
  } catch (error) {
    queue.exec('rollback')
    throw error
  }
}

const stops = [new AbortController(), new AbortController()] // in a service: process.once('SIGTERM', () => stop.abort())

/** Work of the leader: it runs until it is told to end. */
async function consume(lease: Lease): Promise<void> {
  console.log(`${lease.owner} leads`)
  while (!lease.signal.aborted) {
    const number = take(lease)
    console.log(`order ${number} by ${lease.owner}`)
    if (number === ORDERS / 2) stops[0]?.abort()
    if (number === ORDERS) stops[1]?.abort()
    await sleep(10, undefined, { signal: lease.signal }).catch(() => {})
  }
}

const replicas = ['replica-1', 'replica-2'].map(owner => createLocks(sqlite('leases.db'), { owner, ttl: 5_000 }))
const runs = replicas.map(async (locks, i) => {
  await sleep(200 * i) // the first comes first
  await locks.election('order consumer').run(consume, { signal: stops[i]?.signal })
  await locks.close()
})
await Promise.all(runs)
queue.close()
