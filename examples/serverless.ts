/**
 * A serverless function: an event is delivered to several instances, and one instance at a time handles it.
 *
 *     HOLDFAST_STORE=sqlite:leases.db ./script/node examples/serverless.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../src/index.ts' // in your project: 'holdfast'

const { HOLDFAST_STORE } = process.env
// A file in each instance would let every instance do the work.
if (!HOLDFAST_STORE) throw new Error('HOLDFAST_STORE is missing: give all instances one URL, such as redis://host:6379')

// Once per instance, outside of the handler. The first request connects.
const locks = await connect(HOLDFAST_STORE, { ttl: 10_000, lazy: true })

interface Answer {
  readonly statusCode: number
}

async function handler(event: { readonly file: string }): Promise<Answer> {
  // maxHold is shorter than the time limit of the function, so the signal aborts before the platform ends it.
  const lease = await locks.tryAcquire(`import ${event.file}`, { maxHold: 25_000 })
  if (!lease) return { statusCode: 409 } // another instance imports it
  try {
    await importFile(event.file, lease.signal)
    lease.assertHeld()
    return { statusCode: 200 }
  } finally {
    await lease.release() // before the answer: after it the instance may be frozen
  }
}

async function importFile(_file: string, signal: AbortSignal): Promise<void> {
  await sleep(100, undefined, { signal })
}

// Two deliveries of one event.
const answers = await Promise.all([handler({ file: 'orders.csv' }), handler({ file: 'orders.csv' })])
console.log(`answers: ${answers.map(({ statusCode }) => statusCode)}`)
await locks.close()
