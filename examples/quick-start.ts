/**
 * Work under a lease: `using` waits for the name, runs the work, and releases the name.
 *
 *     ./script/node examples/quick-start.ts
 */
import { createLocks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const locks = createLocks(sqlite('leases.db'), { ttl: 10_000, wait: 60_000 })

const sent = await locks.using('reports', async lease => {
  console.log(`holding ${lease.name} with token ${lease.token}`)
  // fetch, timers and many libraries accept a signal. They stop when the lease is lost.
  return await sendReports(lease.signal)
})
console.log(`${sent} reports sent`)

await locks.close()

async function sendReports(signal: AbortSignal): Promise<number> {
  signal.throwIfAborted()
  return 3
}
