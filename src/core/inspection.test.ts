import { expect, test } from 'vitest'
import { follow } from '../../test/scripted-store.ts'
import type { LeaseRecord, Query, Store } from '../contract/store.ts'
import { VirtualClock } from '../testing/clock.ts'
import { inspect } from './inspection.ts'

const RECORD: LeaseRecord = { name: 'job', state: 'held', owner: 'a', token: 1n, note: '', remaining: 1_000 }

/** Over a store that searches in some steps, each of which takes `duration` ms. */
function searched(
  steps: number,
  duration: number,
  between?: (clock: VirtualClock) => Promise<void>,
): { clock: VirtualClock; records: Promise<unknown>; ended: unknown } {
  const clock = new VirtualClock()
  const seen = { ended: undefined as unknown }
  const sleep = (ms: number): Promise<void> => new Promise(resolve => clock.after(ms, resolve))
  async function* find(query: Query): AsyncIterable<LeaseRecord> {
    try {
      for (let step = 0; step < steps; step += 1) {
        await sleep(duration)
        if ('prefix' in query) await query.between?.()
      }
      yield RECORD
    } catch (error) {
      seen.ended = error
      throw error
    }
  }
  const store = { inspect: find } as unknown as Store
  const query = { prefix: '', between: between && (() => between(clock)) }
  return Object.assign(seen, { clock, records: Array.fromAsync(inspect({ store, clock }, query, 600)) })
}

test('a search may take longer than the limit of a request, and rest for longer between two', async () => {
  const rest = (clock: VirtualClock): Promise<void> => new Promise(resolve => clock.after(5_000, resolve))
  const { clock, records } = searched(8, 500, rest)
  const { settled } = follow(records)
  expect(settled).toBe(false)
  await clock.advance(8 * 5_500)
  expect(await records).toMatchObject([{ name: 'job' }])
  expect(clock.pending).toBe(0)
})

test('a step of a search that takes longer than the limit fails', async () => {
  const { clock, records } = searched(2, 601)
  const failure = follow(records)
  await clock.advance(600)
  expect(failure.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('a caller that rejects between two steps ends the search', async () => {
  const enough = new Error('enough')
  const search = searched(2, 1, () => Promise.reject(enough))
  const failure = follow(search.records)
  await search.clock.advance(10)
  expect(failure.error).toBe(enough)
  expect(search.ended).toBe(enough)
})
