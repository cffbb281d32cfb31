import { checkDuration, checkKeys, checkSignal } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { NameState } from '../contract/record.ts'
import type { LeaseRecord } from '../contract/store.ts'
import type { Host } from './host.ts'
import { anyOf, leavable, rest, unlessStopped } from './rest.ts'

export interface ObserveOptions {
  /** Ends the observation. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds between two looks at the store. @default 1,000 */
  readonly every?: number | undefined
}

const observeKeys: ReadonlySet<string> = new Set(['signal', 'every'])

/** Who leads, whenever that or its value is another; see `Election.observe`. Throws `INVALID_ARGUMENT` and `CLOSED` at once. */
export function observe(host: Host, name: string, options: ObserveOptions): AsyncIterable<LeaseRecord | undefined> {
  checkKeys(options, observeKeys, 'observe')
  const { signal, every = 1_000 } = options
  checkDuration(every, 'every')
  checkSignal(signal)
  host.closing.throwIfAborted()
  const left = new AbortController()
  const stop = anyOf(signal, anyOf(left.signal, host.closing))
  return leavable(changes(host, name, every, stop), left)
}

async function* changes(
  host: Host,
  name: string,
  every: number,
  stop: AbortSignal,
): AsyncGenerator<LeaseRecord | undefined, void, undefined> {
  let last: LeaseRecord | undefined | null = null
  let highest = 0n
  for (; !stop.aborted; await rest(host, every, stop)) {
    const seen = await look(host, name, stop)
    if (!seen || stop.aborted) continue
    const token = seen.holder?.token
    // A server that lags behind, or has forgotten, may show who led before: what was seen is not taken back.
    if (token !== undefined && token < highest) continue
    if (last !== null && token === last?.token && seen.holder?.note === last?.note) continue
    last = seen.holder
    highest = token ?? highest
    yield last
  }
}

/** `undefined` when the store did not tell, and may at the next look. */
async function look({ locks }: Host, name: string, stop: AbortSignal): Promise<NameState | undefined> {
  try {
    return await unlessStopped(locks.inspect(name), stop)
  } catch (error) {
    if (stop.aborted || (LeaseError.is(error) && error.retryable)) return undefined
    throw error
  }
}
