/**
 * Three slots of an external API: the provider allows three requests at a time, whichever of our workers send them.
 *
 *     ./script/node examples/api-slots.ts
 *
 * The semaphore counts across all processes that share the store. A worker that dies frees its permit after the ttl.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks } from '../src/index.ts' // in your project: 'holdfast'
import { sqlite } from '../src/stores/sqlite/index.ts' // 'holdfast/sqlite'

// One per worker. Between machines, use redis(client) of 'holdfast/redis'.
const workers = ['worker-1', 'worker-2'].map(owner => createLocks(sqlite('leases.db'), { owner }))

let running = 0
let most = 0

/** The provider refuses a fourth request. */
async function geocode(address: string, signal: AbortSignal): Promise<string> {
  running += 1
  most = Math.max(most, running)
  if (running > 3) throw new Error('429 Too Many Requests')
  await sleep(30, undefined, { signal })
  running -= 1
  return `${address} is on the map`
}

const found = await Promise.all(
  workers.flatMap((locks, worker) => {
    const geocoder = locks.semaphore('geocoder', { limit: 3 })
    const addresses = Array.from({ length: 5 }, (_, index) => `address ${worker * 5 + index + 1}`)
    return addresses.map(address => geocoder.using(permit => geocode(address, permit.signal))) // waits for a permit
  }),
)
console.log(`${found.length} addresses, never more than 3 requests: ${most <= 3}`)
await Promise.all(workers.map(locks => locks.close()))
