import { checkDuration, checkKeys, checkSignal } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { NameState } from '../contract/record.ts'
import type { LeaseRecord } from '../contract/store.ts'
import type { Host } from '../core/host.ts'
import { anyOf, interruptible, sleep, unlessStopped } from './interruptible.ts'

/** The options of `election.observe`. */
export interface ObserveOptions {
  /** Ends the observation. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds between two requests. @default 1,000 */
  readonly every?: number | undefined
}

const observeKeys: ReadonlySet<string> = new Set(['signal', 'every'])

/** Yields the leader after each change; see `Election.observe`. Throws `INVALID_ARGUMENT` and `CLOSED` at once. */
export function observe(host: Host, name: string, options: ObserveOptions): AsyncIterable<LeaseRecord | undefined> {
  checkKeys(options, observeKeys, 'observe')
  const { signal, every = 1_000 } = options
  checkDuration(every, 'every')
  checkSignal(signal)
  host.closing.throwIfAborted()
  const left = new AbortController()
  const stop = anyOf(signal, anyOf(left.signal, host.closing))
  return interruptible(changes(host, name, every, stop), left)
}

async function* changes(
  host: Host,
  name: string,
  every: number,
  stop: AbortSignal,
): AsyncGenerator<LeaseRecord | undefined, void, undefined> {
  let last: LeaseRecord | undefined | null = null
  let highest = 0n
  for (; !stop.aborted; await sleep(host, every, stop)) {
    const seen = await inspectOnce(host, name, stop)
    if (!seen || stop.aborted) continue
    const [holder] = seen.holders
    const token = holder?.token
    // A server that lags behind or has lost data may still show an earlier leader.
    if (token !== undefined && token < highest) continue
    if (last !== null && token === last?.token && holder?.note === last?.note) continue
    last = holder
    highest = token ?? highest
    yield last
  }
}

/** Reads the state of the name. `undefined`: the store failed, and may answer the next request. */
async function inspectOnce(host: Host, name: string, stop: AbortSignal): Promise<NameState | undefined> {
  try {
    return await unlessStopped(host.inspect(name), stop)
  } catch (error) {
    if (stop.aborted || (LeaseError.is(error) && error.retryable)) return undefined
    throw error
  }
}
