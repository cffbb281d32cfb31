import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Keys } from './keys.ts'
import { holderOf, memberOf, waiterOf } from './record.ts'
import { LARGEST, type Requests } from './requests.ts'
import { scan } from './scan.ts'

/** Comes before all claims of a name. */
const FIRST = '-inf'

/** The number of names in one read. */
const PAGE = 1_000

/** The number of pages of keys to search before the names that were found are read. */
const FEW = 10

/**
 * Yields holders, each followed by its waiters in order. The names are sorted, unless the search among other keys takes
 * long.
 */
export async function* inspection(
  requests: Requests,
  keys: Keys,
  query: Query,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  if ('name' in query) {
    yield* await recordsOf(requests, keys, query.name, signal)
    return
  }
  const sent = requests.isCluster ? undefined : query.sent
  let pages = 0
  let names: string[] = []
  for await (const found of search(requests, keys, query.prefix, signal)) {
    if (pages > 0) await query.between?.()
    pages += 1
    sent?.(1)
    names.push(...found)
    if (pages < FEW) continue
    yield* records(requests, keys, names, signal, sent)
    names = []
  }
  yield* records(requests, keys, names, signal, sent)
}

async function* records(
  requests: Requests,
  keys: Keys,
  names: string[],
  signal: AbortSignal,
  sent?: (requests: number) => void,
): AsyncIterable<LeaseRecord> {
  names.sort()
  while (names.length > 0) {
    const page = names.splice(0, PAGE)
    const found = await Promise.all(page.map(name => recordsOf(requests, keys, name, signal, sent)))
    yield* found.flat()
  }
}

/** Reads the records of a name. Many claims are read in pages, between which they may change. */
async function recordsOf(
  requests: Requests,
  keys: Keys,
  name: string,
  signal: AbortSignal,
  sent?: (requests: number) => void,
): Promise<LeaseRecord[]> {
  const key = keys.lease(name)
  let holders: LeaseRecord[] = []
  const waiters: [waiter: string, remaining: number][] = []
  for (let after = FIRST; after !== ''; ) {
    sent?.(after === FIRST ? 2 / LARGEST : 1) // names share requests, which are half full at worst
    const request = { verb: 'inspect', key, id: '-', parameters: `0 0 0 ${after}` }
    const { now, parts } = await requests.put(request, signal, (answer, now) => ({ now, parts: answer as unknown[] }))
    const [lease = '', next = '', ...claims] = parts.map(String)
    // A holder of limit 1. It comes with the first page, whether or not that page has room for others.
    if (lease) holders = [holderOf(name, lease.slice(lease.indexOf(' ') + 1), Number.parseInt(lease, 10) - now)]
    for (let index = 0; index < claims.length; index += 2) {
      const [remaining, claim = ''] = [Number(claims[index]) - now, claims[index + 1]]
      if (claim.startsWith('h')) holders.push(memberOf(name, claim, remaining))
      else if (claim) waiters.push([claim, remaining])
    }
    signal.throwIfAborted()
    after = next
  }
  const slotOf = ({ slots: [first = 0] = [] }: LeaseRecord): number => first
  holders.sort((one, other) => slotOf(one) - slotOf(other))
  waiters.sort(([one], [other]) => arrivalOf(one) - arrivalOf(other))
  return [...holders, ...waiters.map(([waiter, remaining], position) => waiterOf(name, waiter, remaining, position))]
}

/** The number of a waiter's arrival. A waiter that was passed comes with the first page, whatever its number. */
function arrivalOf(waiter: string): number {
  return Number(waiter.split(' ', 3)[2])
}

/**
 * Yields for each page of keys the names that no earlier page had: those that begin with `prefix` and that are, or recently
 * were, held or waited for.
 */
export async function* search(
  requests: Requests,
  keys: Keys,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<string[], void> {
  const known = new Set<string>()
  signal.throwIfAborted()
  for await (const page of scan(work => requests.run(work), keys.pattern(prefix))) {
    const found: string[] = []
    for (const key of page) {
      const name = keys.nameOf(key)
      // The key of `a{` also matches the pattern of `a{}`.
      if (!name?.startsWith(prefix) || known.has(name)) continue
      known.add(name)
      found.push(name)
    }
    yield found
    signal.throwIfAborted()
  }
}
