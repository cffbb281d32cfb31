// Tries to use the file that its argument names, in a process that a test has put under some restriction, and prints
// what came of it. With a second argument it does so while that file fills the disk, and once more without it.
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { LeaseError } from '../../../contract/errors.ts'
import { sqlite } from '../index.ts'
import { newClaim } from './claim.ts'

const [path = '', filler] = process.argv.slice(2)
const store = sqlite(path, { allowSharedFolder: process.env.ALLOW_SHARED_FOLDER !== undefined })
const never = new AbortController().signal

async function attempt(count: number): Promise<object> {
  let held = 0
  try {
    for (; held < count; held += 1) await store.acquire(newClaim(`${count} of ${held}`), never)
    return { held }
  } catch (error) {
    if (!LeaseError.is(error)) throw error
    const { code, message, retryable } = error
    return { held, code, message, retryable }
  }
}

function fillDisk(file: string): void {
  const descriptor = openSync(file, 'w')
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4_096))
  } catch {
    closeSync(descriptor)
  }
}

const outcomes = [await attempt(1)]
if (filler) {
  fillDisk(filler)
  outcomes.push(await attempt(1_000))
  rmSync(filler)
  outcomes.push(await attempt(2))
  let records = 0
  for await (const _ of store.inspect({ prefix: '' }, never)) records += 1
  outcomes.push({ records })
}
console.log(JSON.stringify(outcomes))
