import { until } from '../../lab/servers/until.ts'
import type { Lease, Locks } from '../../src/index.ts'

// What the dashboard has to make clear. `locks` hold leases of 10 minutes that nobody renews.

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Runs `work` as if it was `ms` earlier. Tokens of the memory store are times. */
async function earlier(ms: number, work: () => Promise<unknown>): Promise<void> {
  const now = Date.now
  Date.now = () => now() - ms
  try {
    await work()
  } finally {
    Date.now = now
  }
}

/** Waits in the queue of a name, for as long as its locks are open. */
async function wait(locks: Locks, name: string, owners: readonly string[], asked: (owner: string) => Promise<unknown>) {
  for (const owner of owners) {
    const before = (await locks.inspect(name)).waiters.length
    asked(owner).catch(() => {})
    await until(`${owner} waits`, async () => (await locks.inspect(name)).waiters.length > before)
  }
}

/** 200 names, of which one is held for an hour. Three wait for it. */
export async function stuckAmongMany(locks: Locks): Promise<void> {
  await earlier(HOUR, () =>
    locks.acquire('invoices-17', { owner: 'worker-b:4121', note: 'page 3 of 40', ttl: 2 * HOUR }),
  )
  for (let index = 200; index > 0; index -= 1) {
    const name = index % 10 === 0 ? `tenant-${index / 10}-export` : `invoices-${index}`
    if (name !== 'invoices-17')
      await earlier(index * 150, () =>
        locks.acquire(name, { owner: `worker-${'abcd'[index % 4]}:${4120 + (index % 4)}` }),
      )
  }
  await wait(locks, 'invoices-17', ['worker-a:4120', 'worker-c:4122', 'worker-d:4123'], owner =>
    locks.acquire('invoices-17', { owner }),
  )
}

/** A semaphore of five that is full, and two callers that wait. */
export async function fullSemaphore(locks: Locks): Promise<void> {
  const geocoder = locks.semaphore('geocoder', { limit: 5 })
  for (const index of [3, 2, 1])
    await earlier(index * 40_000, () => geocoder.acquire({ owner: `worker-${index}`, note: `city ${index}` }))
  await geocoder.acquire({ owner: 'batch', permits: 2, note: 'all of Berlin' })
  await wait(locks, 'geocoder', ['worker-4', 'worker-5'], owner => geocoder.acquire({ owner, permits: 2 }))
  await locks.acquire('nightly-backup', { owner: 'cron-1', note: 'table 7 of 12' })
  await locks.acquire('search-index', { owner: 'indexer-2' })
  await locks.once('weekly-report', { within: HOUR, owner: 'cron-2' }, async () => {})
}

/**
 * 17 names, of which one process holds five. Each step of the result must be seen before the next: a renewal, and then
 * what is left of it 6 minutes later. For a page, a shorter ttl is the same as time that has passed.
 */
export async function silentProcess(locks: Locks): Promise<readonly (() => Promise<unknown>)[]> {
  const held = { ttl: 20 * MINUTE, owner: 'worker-a:4120', note: 'sending' }
  const leases: Lease[] = []
  for (const tenant of ['acme', 'globex', 'initech', 'umbrella', 'wayne'])
    await earlier(12 * MINUTE, async () => leases.push(await locks.acquire(`invoices-${tenant}`, held)))
  for (let index = 12; index > 0; index -= 1)
    await earlier(index * 700, () =>
      locks.acquire(`shard-${index}`, { owner: `worker-${'bcd'[index % 3]}:412${index % 3}` }),
    )
  await wait(locks, 'invoices-globex', ['worker-b:4120', 'worker-c:4121'], owner =>
    locks.acquire('invoices-globex', { owner }),
  )
  return [10 * MINUTE, 4 * MINUTE].map(ttl => () => Promise.all(leases.map(lease => lease.extend(ttl))))
}
