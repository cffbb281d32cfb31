import { writeSync } from 'node:fs'
import { connect, type LocksDefaults } from '../../../index.ts'

/** The messages of a holder. Times are nanoseconds of the clock that all processes of a machine share. */
export interface Told {
  readonly state: 'holds' | 'ran on' | 'released'
  readonly token?: string
  /** When it last looked and was held, if it looked. */
  readonly last?: string
  /** The code and the message of the first check after the lease ended, if it did. */
  readonly code?: string
  readonly message?: string
  readonly aborted?: boolean
  readonly remaining?: number
  readonly at: string
}

// A process that holds a lease, blocks its event loop for a while, and releases. It `looks` all the time meanwhile, until
// the lease is over, or it `sleeps` and looks once after; or it blocks from the start and for ever, and `is stuck`.
const [url = '', name = '', how = '', duration = '', defaults = ''] = process.argv.slice(2)
const tell = (told: Omit<Told, 'at'>): void => {
  writeSync(1, `${JSON.stringify({ ...told, at: String(process.hrtime.bigint()) })}\n`)
}
const sleep = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const locks = await connect(url, JSON.parse(defaults) as LocksDefaults)
const lease = await locks.acquire(name)
let last = process.hrtime.bigint()
let error: { code?: string; message?: string } = {}
const look = (): void => {
  try {
    const now = process.hrtime.bigint()
    lease.assertHeld()
    last = now
  } catch (reason) {
    error = reason as Error
  }
}

tell({ state: 'holds', token: String(lease.token) })
if (how === 'is stuck') sleep(Number.POSITIVE_INFINITY)
const end = performance.now() + Number(duration)
if (how === 'sleeps') sleep(Number(duration))
else while (performance.now() < end && !error.code) look()
if (how === 'sleeps') look()
const { remaining, signal } = lease
const { code, message } = error
tell({ state: 'ran on', last: String(last), remaining, aborted: signal.aborted, ...(code && { code, message }) })
await lease.release()
tell({ state: 'released' })
await locks.close()
