import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Gateway } from './gateway.ts'
import { after, type Keys } from './keys.ts'
import type { KeyValue } from './messages.ts'
import { holderOf, slotsOf, waiterOf } from './record.ts'
import { byRevision } from './view.ts'

/** The number of keys in one read. */
const PAGE = 1_000

/** The number of parallel requests for remaining times, one for each holder. */
const AT_ONCE = 50

/** Yields the holders of each name, and then its waiters in order. `remaining` resolves to 0 for a lease that has ended. */
export async function* records(
  gateway: Gateway,
  keys: Keys,
  query: Query,
  remaining: (lease: string) => Promise<number>,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const range = 'name' in query ? keys.all(query.name) : keys.names(query.prefix)
  const limit = 'name' in query ? 0 : PAGE // read all keys of one name
  let rest: KeyValue[] = []
  for (let key: string | undefined = range.key; key !== undefined; ) {
    const { kvs = [], more = false } = await gateway.range({ ...range, key, limit })
    signal.throwIfAborted()
    const last = kvs.at(-1)
    key = more && last ? after(last.key) : undefined
    rest = [...rest, ...kvs]
    // The last name may continue on the next page.
    const open = key === undefined || !last ? undefined : keys.parse(last.key).name
    const isWhole = (found: KeyValue): boolean => keys.parse(found.key).name !== open
    const whole = rest.filter(isWhole)
    rest = rest.filter(found => !isWhole(found))
    yield* recordsOf(keys, whole, remaining, signal)
  }
}

async function* recordsOf(
  keys: Keys,
  all: readonly KeyValue[],
  remaining: (lease: string) => Promise<number>,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const sorted = sort(keys, all)
  let [last, position] = ['', 0]
  for (let start = 0; start < sorted.length; start += AT_ONCE) {
    const some = sorted.slice(start, start + AT_ONCE)
    const left = await Promise.all(
      some.map(async ({ key, lease = '0' }) => (keys.parse(key).isHeld ? remaining(lease) : 0)),
    )
    signal.throwIfAborted()
    for (const [index, found] of some.entries()) {
      const { name, isHeld } = keys.parse(found.key)
      if (name !== last) [last, position] = [name, 0]
      const ms = left[index]
      if (!isHeld) yield waiterOf(name, found, position++)
      else if (ms) yield holderOf(name, found, ms) // without remaining time, the lease ended after the keys were read
    }
  }
}

/** Sorts names as etcd does; for each name the holders by their lowest slot, then the queue. */
function sort(keys: Keys, all: readonly KeyValue[]): readonly KeyValue[] {
  const bySlot = (a: KeyValue, b: KeyValue): number => (slotsOf(a)[0] ?? 0) - (slotsOf(b)[0] ?? 0)
  return [...Map.groupBy(all, found => keys.parse(found.key).name).values()].flatMap(found => {
    const [holders, waiters] = [true, false].map(isHeld => found.filter(({ key }) => keys.parse(key).isHeld === isHeld))
    return [...(holders ?? []).sort(bySlot), ...(waiters ?? []).sort(byRevision)]
  })
}
