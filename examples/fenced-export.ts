/**
 * A file that is exported by whoever holds the lease, and read by others at any time. One holder is stuck in the middle of
 * its export for longer than its lease lasts, and ends it after the next one: its file, which is older, is refused.
 *
 *     ./script/node examples/fenced-export.ts
 */
import { readFile } from 'node:fs/promises'
import { fencedWrite } from '../src/fencing/files/index.ts' // in your project: 'holdfast/fencing/files'
import { createLocks, LeaseError } from '../src/index.ts' // 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

const locks = createLocks(sqlite('leases.db'))
const prices = { hammer: 950, saw: 2_400 }

/** The lines of the file. Between two of them anything may happen, such as a query that takes long. */
async function* lines(query: Promise<unknown> = Promise.resolve()): AsyncGenerator<string> {
  const asTheyAreNow = Object.entries(prices)
  yield 'item,cents\n'
  await query
  for (const [item, cents] of asTheyAreNow) yield `${item},${cents}\n`
}

const query = Promise.withResolvers<void>()
// Without the lease itself, as in a stopped process: what this process knows to be over is refused at once.
const { name, token } = await locks.acquire('export', { ttl: 1_000, heartbeat: false })
const exporting = fencedWrite('prices.csv', lines(query.promise), { name, token })

await locks.using('export', async lease => {
  prices.hammer = 900
  await fencedWrite('prices.csv', lines(), lease)
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
