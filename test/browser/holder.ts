/** A process that holds a name until it is killed: node holder.ts FILE NAME OWNER. It prints a line once it holds. */
import { createLocks } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/index.ts'

const [file = '', name = '', owner = ''] = process.argv.slice(2)
const locks = createLocks(sqlite(file), { ttl: 3_000, owner })
const hold = new Promise<never>(() => setInterval(() => {}, 60_000))

await locks.using(name, async lease => {
  console.log(`${lease.token} ${Date.now()}`)
  await hold
})
