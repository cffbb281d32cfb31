/**
 * As quick-start.ts, but with `await using`, which releases the lease at the end of the block. Node 24 supports it. For
 * older versions, TypeScript (5.2 or newer) and bundlers compile it.
 *
 *     ./script/node examples/await-using.ts
 */
import { createLocks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

await using locks = createLocks(sqlite('leases.db'))
{
  await using lease = await locks.acquire('reports')
  console.log(`holding ${lease.name} with token ${lease.token}`)

  await using second = await locks.tryAcquire('reports')
  console.log(second ? 'this cannot be' : 'held, so tryAcquire resolves to undefined')

  lease.assertHeld() // throws if the lease was lost: the end of the block does not
}
const {
  holders: [holder],
} = await locks.inspect('reports')
console.log(holder ? 'this cannot be' : 'released at the end of the block')
