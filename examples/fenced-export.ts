/**
 * The holder of a lease exports a file, which others read at any time. One holder hangs in the middle of its export until
 * its lease has ended, and finishes after the next holder. Its older file is refused.
 *
 *     ./script/node examples/fenced-export.ts
 */
import { readFile } from 'node:fs/promises'
import { fileFence } from '../src/fencing/files/index.ts' // in your project: 'holdfast/fencing/files'
import { createLocks, LeaseError } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const locks = createLocks(sqlite('leases.db'))
const files = fileFence()
const prices = { hammer: 950, saw: 2_400 }

/** The lines of the file. Between two lines, a query may take long. */
async function* lines(query: Promise<unknown> = Promise.resolve()): AsyncGenerator<string> {
  const snapshot = Object.entries(prices)
  yield 'item,cents\n'
  await query
  for (const [item, cents] of snapshot) yield `${item},${cents}\n`
}

const query = Promise.withResolvers<void>()
// Without the lease object, as in a paused process: this process would refuse a lease that it knows to be over.
const { name, token } = await locks.acquire('export', { ttl: 1_000, heartbeat: false })
const exporting = files.write({ name, token }, 'prices.csv', lines(query.promise))

await locks.using('export', async lease => {
  prices.hammer = 900
  await files.write(lease, 'prices.csv', lines())
  console.log('the next holder has exported the new prices')
})
query.resolve()
try {
  await exporting
  console.log('the old prices are exported')
} catch (error) {
  const { code } = LeaseError.from(error) ?? {}
  if (code !== 'STALE_TOKEN') throw error
  console.log(`the first holder is refused: ${code}`)
}
console.log(await readFile('prices.csv', 'utf8'))
await locks.close()
