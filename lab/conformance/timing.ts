import { AssertionError } from 'node:assert'
import { LeaseError } from '../../src/index.ts'

/** Milliseconds within which every request must be answered, on the slowest machine. */
const LIMIT = 10_000
/** The same for a state that takes many requests, such as a thousand waiters. */
export const STATE_LIMIT = 30_000

/** Milliseconds: a server may count whole ones, against a finer clock here. The core's margin covers it. */
export const EARLY = 2

/** Resolves to the answer of `ask`, or rejects after 10 s. */
export async function within<Answer>(what: string, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${LIMIT} ms: ${what}`)), LIMIT)
  })
  try {
    return await Promise.race([ask(controller.signal), late])
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
}

/**
 * Polls until `condition` resolves to something true. Rejects after `limit` ms. It pauses for as long as each look takes
 * and for a tenth of the time so far, from 5 to 25 ms, so that looking does not keep a slow server from what is waited for.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limit: number = STATE_LIMIT,
): Promise<NonNullable<T>> {
  const start = performance.now()
  for (;;) {
    const began = performance.now()
    const answer = await condition()
    if (answer) return answer
    const now = performance.now()
    if (now > start + limit) throw new Error(`not within ${limit} ms: ${what}`)
    await sleep(Math.max(now - began, Math.min(Math.max(5, (now - start) / 10), 25)))
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

/** Asks for 25 items at a time. On a busy machine, the last of hundreds would wait for longer than a request may. */
export async function eachOf<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let from = 0; from < items.length; from += 25)
    answers.push(...(await Promise.all(items.slice(from, from + 25).map(ask))))
  return answers
}

/** An attempt was too late to prove anything. */
export class TooSlow extends Error {}

/**
 * For timed behaviour: repeats an attempt that was `TooSlow`, that got no answer in time, or that failed while this
 * process hung for more than `patience` ms. So a busy machine proves nothing wrong. Each attempt uses new names, and may
 * use longer ttls: it gets its number, from 1.
 */
export async function inTime<T>(patience: number, attempt: (nth: number) => Promise<T>): Promise<T> {
  for (let nth = 1; ; nth += 1) {
    const stalls = new Stalls()
    try {
      return await attempt(nth)
    } catch (error) {
      await sleep(0) // a stall that ends here is seen
      if (nth === 8 || !(isTooSlow(error) || stalls.longest > patience)) throw error
    } finally {
      stalls.stop()
    }
  }
}

/** A server that hangs for longer than a request lasts is too slow as well. */
function isTooSlow(reason: unknown): boolean {
  const error = reason instanceof AssertionError ? reason.actual : reason // where `assert.rejects` expected another one
  return (
    error instanceof TooSlow || LeaseError.is(error, 'STORE_UNAVAILABLE') || LeaseError.is(error, 'OUTCOME_UNKNOWN')
  )
}

/** The longest stall of the event loop of this process. */
class Stalls {
  longest = 0
  #last = performance.now()
  readonly #timer = setInterval(() => this.#tick(), 2)

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const now = performance.now()
    this.longest = Math.max(this.longest, now - this.#last)
    this.#last = now
  }
}

/** Blocks the event loop, as a long computation does, but leaves the processor to others. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
