import { isLease, visible } from '../contract/record.ts'
import { request } from '../contract/request.ts'
import type { LeaseRecord, NodeRecord, Query } from '../contract/store.ts'
import type { Core } from './core.ts'

type Shown = LeaseRecord | NodeRecord

/** A search of the store that waits until it may go on. */
interface Pause {
  resume(): void
  end(reason: unknown): void
}

/**
 * Yields the store's records of these names. `limit`: milliseconds that the store may take for each record, and for each
 * step of a search. Between the steps it awaits `between` of the query, without a limit.
 */
export async function* inspect(
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  query: Query,
  limit: number,
): AsyncIterable<Shown> {
  const controller = new AbortController()
  let happened: (pause?: Pause) => void = () => {}
  const event = (): Promise<Pause | undefined> => new Promise(resolve => (happened = resolve))
  const between = (): Promise<void> => new Promise((resume, end) => happened({ resume, end }))
  let records: AsyncIterator<Shown> | undefined
  const next = async (): Promise<IteratorResult<Shown>> => {
    records ??= store
      .inspect('name' in query ? query : { ...query, between }, controller.signal)
      [Symbol.asyncIterator]()
    return records.next()
  }
  try {
    for (;;) {
      let pauseOrEnd = event()
      const answer = next()
      const ended = (): void => happened()
      answer.then(ended, ended)
      const step = async (): Promise<Pause | IteratorResult<Shown>> => (await pauseOrEnd) ?? answer
      let shown = await request(clock, limit, step)
      while ('resume' in shown) {
        pauseOrEnd = event()
        await wanted(query, shown)
        shown.resume()
        shown = await request(clock, limit, step)
      }
      if (shown.done) return
      yield isLease(shown.value) ? visible(shown.value) : shown.value
    }
  } finally {
    controller.abort()
    const end = async (): Promise<unknown> => records?.return?.()
    end().catch(() => {}) // not awaited: it queues behind a record that may never come
  }
}

/** Rejects, and ends the search, if the caller does not want it to go on. */
async function wanted(query: Query, { end }: Pause): Promise<void> {
  try {
    if ('prefix' in query) await query.between?.()
  } catch (error) {
    end(error)
    throw error
  }
}
