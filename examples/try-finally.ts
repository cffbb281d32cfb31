/**
 * The same as quick-start.ts by hand, for work that does not fit into one function: acquire, and release whatever
 * happens.
 *
 *     ./script/node examples/try-finally.ts
 */
import { createLocks, LeaseError } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite.ts' // 'holdfast/sqlite'

const locks = createLocks(sqlite('leases.db'), { ttl: 10_000, wait: 5_000 })

try {
  const lease = await locks.acquire('reports')
  try {
    for (const report of ['monday', 'tuesday', 'wednesday']) {
      lease.assertHeld() // throws if the lease is lost, right even after this process was stopped for a while
      console.log(`${report} sent with token ${lease.token}`)
    }
  } finally {
    await lease.release()
  }
} catch (error) {
  const leaseError = LeaseError.from(error)
  if (leaseError?.code !== 'ACQUIRE_TIMEOUT') throw error
  console.log(leaseError.message)
} finally {
  await locks.close()
}
