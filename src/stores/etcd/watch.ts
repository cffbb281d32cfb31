import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { failure } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { WatchAnswer } from './messages.ts'

export interface WatchListener {
  /** `revision`: all events up to it have come. */
  onEvents(events: NonNullable<WatchAnswer['events']>, revision: bigint): void
  /** The watch ended by itself, so events were lost. */
  onEnd(): void
}

/** A stream of changes. */
export interface Watch {
  isOver(): boolean
  end(): void
}

/** Resolves once etcd confirms that it sends changes. Events may come before that. */
export async function openWatch(gateway: Gateway, request: object, listener: WatchListener): Promise<Watch> {
  const { promise: confirmed, resolve: confirm, reject } = Promise.withResolvers<void>()
  let isOver = false
  let endStream = (): void => {}
  const end = (): void => {
    isOver = true
    endStream()
  }
  const fail = (error: Error): void => {
    if (isOver) return
    end()
    reject(failure(error, true))
    listener.onEnd()
  }
  const onMessage = (message: unknown): void => {
    if (isOver) return
    const { created, canceled, compact_revision, events = [], header } = message as WatchAnswer
    if (canceled)
      fail(new Error(compact_revision ? `revisions up to ${compact_revision} are compacted` : 'the watch was ended'))
    else if (created) confirm()
    // A watch that is behind gets its events in parts, of whole revisions. Each part has the newest revision in its header.
    else listener.onEvents(events, BigInt(events.at(-1)?.kv.mod_revision ?? header.revision))
  }
  const giveUp = (): void => fail(new LeaseError('OUTCOME_UNKNOWN', 'etcd did not open the watch in time'))
  const timeout = setTimeout(giveUp, LONGEST_REQUEST).unref()
  const onEnd = (): void => fail(new Error('the watch ended'))
  gateway.stream('watch', { create_request: request }, { onMessage, onEnd, onFailure: fail }).then(opened => {
    endStream = opened
    if (isOver) opened()
  }, fail)
  try {
    await confirmed
  } finally {
    clearTimeout(timeout)
  }
  return { isOver: () => isOver, end }
}
