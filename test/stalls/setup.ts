import { appendFileSync } from 'node:fs'
import { beforeEach, inject } from 'vitest'
import { longestStall } from './stalls.ts'

/** Milliseconds: what a failed attempt may leave held, as `claimOf` claims it, ends within 10 s. */
const LEFT = 11_000

/**
 * A test that fails while the machine hung proves nothing, so it is repeated, at most twice. One that fails while
 * the machine ran is not. Leases that it left run out first. `script/test` lists what was repeated.
 */
beforeEach(({ task }) => {
  const began = Date.now()
  const condition = ({ message }: Pick<Error, 'message'>): boolean => {
    const stall = longestStall(inject('stalls'), began)
    const { HOLDFAST_REPEATED } = process.env
    if (stall > 0 && HOLDFAST_REPEATED)
      appendFileSync(HOLDFAST_REPEATED, `${task.name}: ${stall} ms (${message.split('\n')[0]})\n`)
    return stall > 0
  }
  Object.assign(task, { retry: { count: 2, condition, delay: LEFT } }) // the configuration cannot have a function
})
