import { isLease, visible } from '../contract/record.ts'
import { request } from '../contract/request.ts'
import type { LeaseRecord, NodeRecord, Query } from '../contract/store.ts'
import type { Core } from './core.ts'

/** Yields the store's records of these names. `limit`: milliseconds that the store may take for each record. */
export async function* inspect(
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  query: Query,
  limit: number,
): AsyncIterable<LeaseRecord | NodeRecord> {
  const controller = new AbortController()
  let records: AsyncIterator<LeaseRecord | NodeRecord> | undefined
  const next = async (): Promise<IteratorResult<LeaseRecord | NodeRecord>> => {
    records ??= store.inspect(query, controller.signal)[Symbol.asyncIterator]()
    return records.next()
  }
  try {
    for (;;) {
      const { done, value } = await request(clock, limit, next)
      if (done) return
      yield isLease(value) ? visible(value) : value
    }
  } finally {
    controller.abort()
    const end = async (): Promise<unknown> => records?.return?.()
    end().catch(() => {}) // not awaited: it queues behind a record that may never come
  }
}
