import { appendFileSync } from 'node:fs'
import { beforeEach, inject } from 'vitest'
import { LIMIT, longestStall } from './stalls.ts'

/** Milliseconds: what a failed attempt may leave held, as `claimOf` claims it, ends within 10 s. */
const LEFT = 11_000

/** Milliseconds before a failure in which a stall may be its cause: a test that it made hang fails at its limit. */
const RECENT = LIMIT + 5_000

/**
 * A test that fails while the machine hung proves nothing, so it is repeated, at most twice. One that fails while
 * the machine ran is not, nor is one of fast-check, which uses no time. Leases that it left run out first. `script/test`
 * lists what was repeated.
 */
beforeEach(({ task }) => {
  const began = Date.now()
  const condition = ({ message }: Pick<Error, 'message'>): boolean => {
    if (message.startsWith('Property failed')) return false
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100) // until the monitor, if it hung as well, has noted it
    const stall = longestStall(inject('stalls'), Math.max(began, Date.now() - RECENT))
    const { HOLDFAST_REPEATED } = process.env
    if (stall > 0 && HOLDFAST_REPEATED)
      appendFileSync(HOLDFAST_REPEATED, `${task.name}: ${stall} ms (${message.split('\n')[0]})\n`)
    return stall > 0
  }
  Object.assign(task, { retry: { condition, delay: LEFT } }) // the configuration says how often, and cannot have a function
})
