import { visible } from '../contract/record.ts'
import { request } from '../contract/request.ts'
import type { LeaseRecord, Query } from '../contract/store.ts'
import type { Core } from './core.ts'

/** What the store has of these names. `limit`: milliseconds that it may take for each. */
export async function* look({ store, clock }: Core, query: Query, limit: number): AsyncIterable<LeaseRecord> {
  const controller = new AbortController()
  let records: AsyncIterator<LeaseRecord> | undefined
  const next = async (): Promise<IteratorResult<LeaseRecord>> => {
    records ??= store.inspect(query, controller.signal)[Symbol.asyncIterator]()
    return records.next()
  }
  try {
    for (;;) {
      const { done, value } = await request(clock, limit, next)
      if (done) return
      yield visible(value)
    }
  } finally {
    controller.abort()
    const end = async (): Promise<unknown> => records?.return?.()
    end().catch(() => {}) // nobody waits for it: it queues behind a record that may never come
  }
}
