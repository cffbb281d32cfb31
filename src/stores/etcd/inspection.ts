import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Gateway } from './gateway.ts'
import { after, type Keys } from './keys.ts'
import type { KeyValue } from './messages.ts'
import { holderOf, waiterOf } from './record.ts'

/** Keys read at once. */
const PAGE = 1_000

/** What remains of a lease is asked for each holder alone, for so many at once. */
const AT_ONCE = 50

/** Holders, each followed by its waiters in order. `remaining` answers 0 for a lease that has ended. */
export async function* records(
  gateway: Gateway,
  keys: Keys,
  query: Query,
  remaining: (lease: string) => Promise<number>,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const range = 'name' in query ? keys.all(query.name) : keys.names(query.prefix)
  const limit = 'name' in query ? 0 : PAGE // all of one
  let rest: KeyValue[] = []
  for (let key: string | undefined = range.key; key !== undefined; ) {
    const { kvs = [], more = false } = await gateway.range({ ...range, key, limit })
    signal.throwIfAborted()
    const last = kvs.at(-1)
    key = more && last ? after(last.key) : undefined
    rest = [...rest, ...kvs]
    // The last name may go on with the next page.
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
      some.map(async ({ key, lease = '0' }) => (keys.parse(key).id === undefined ? remaining(lease) : 0)),
    )
    signal.throwIfAborted()
    for (const [index, found] of some.entries()) {
      const { name, id } = keys.parse(found.key)
      if (name !== last) [last, position] = [name, 0]
      const ms = left[index]
      if (id !== undefined) yield waiterOf(name, found, position++)
      else if (ms) yield holderOf(name, found, ms) // else it ended since the keys were read
    }
  }
}

/** The names as etcd sorts them; of each the holder, then the line in the order of its create revisions. */
function sort(keys: Keys, all: readonly KeyValue[]): readonly KeyValue[] {
  const byName = Map.groupBy(all, found => keys.parse(found.key).name)
  const order = ({ key, create_revision }: KeyValue): bigint =>
    keys.parse(key).id === undefined ? -1n : BigInt(create_revision)
  return [...byName.values()].flatMap(found => found.sort((a, b) => (order(a) < order(b) ? -1 : 1)))
}
