import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { backoff, type Cancel, CHECK, pause, request } from '../contract/request.ts'
import { LONGEST_TRY } from '../contract/time.ts'
import type { Core } from './core.ts'

/** The name that `ping` reads. Nobody needs to hold it. */
const READ = 'holdfast:ping'

/** The store to ask, and what the request needs. */
export interface Asker extends Pick<Core, 'store' | 'clock' | 'random'> {
  readonly owner: string
}

/** Sends the store one request. It reads a name, so it needs no right to write. Rejects `STORE_UNAVAILABLE` after 2 s. */
export async function ping({ store, clock, owner }: Asker, cancel: Cancel): Promise<void> {
  const read = async (signal: AbortSignal): Promise<void> => {
    for await (const _ of store.inspect({ name: READ }, signal)) if (signal.aborted) return
  }
  try {
    await request(clock, LONGEST_TRY, read, { cancel })
  } catch (reason) {
    if (cancel.cancelled || !LeaseError.is(reason)) throw reason
    const isUnanswered = reason.code === 'OUTCOME_UNKNOWN'
    const error = isUnanswered ? new LeaseError('STORE_UNAVAILABLE', reason.message, { cause: reason }) : reason
    events.request_failed.publish({ request: 'ping', name: READ, owner, error })
    throw error
  }
}

/** The message of an error of the first call. A server of another kind may be at the address, and wait for more input. */
function firstMessage({ message }: LeaseError): string {
  return message.startsWith('the store did not answer') ? `${message}; perhaps it is another kind of server` : message
}

/** Asks until the store answers, for `timeout` ms. Rejects at once if it refuses for good. */
export async function untilAnswered(asker: Asker, timeout: number, cancel: Cancel): Promise<void> {
  const { clock, random } = asker
  let last: LeaseError | undefined
  const giveUp = (): void => {
    const message = last
      ? `${firstMessage(last)} (asked for ${timeout} ms)`
      : `the store did not answer within ${timeout} ms${CHECK}`
    cancel.cancel(new LeaseError('STORE_UNAVAILABLE', message, { cause: last }))
  }
  const stopTimer = Number.isFinite(timeout) ? clock.after(timeout, giveUp) : undefined
  try {
    for (let failures = 1; ; failures++) {
      try {
        return await ping(asker, cancel)
      } catch (error) {
        if (cancel.cancelled || !LeaseError.is(error) || !error.retryable) throw error
        last = error
        await pause(clock, backoff(failures, random), { cancel })
      }
    }
  } finally {
    stopTimer?.()
  }
}
