import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Keys } from './keys.ts'
import { holderOf, waiterOf } from './record.ts'
import type { Requests } from './requests.ts'

/** Names read at once. */
const PAGE = 1_000

/** Holders, each followed by its waiters in order. */
export async function* inspection(
  requests: Requests,
  keys: Keys,
  query: Query,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const names = 'name' in query ? [query.name] : (await namesFrom(requests, keys, query.prefix, signal)).sort()
  while (names.length > 0) {
    const page = names.splice(0, PAGE)
    const found = await Promise.all(page.map(name => recordsOf(requests, keys, name, signal)))
    yield* found.flat()
  }
}

/** A long queue is read in pages, between which it may change. */
async function recordsOf(requests: Requests, keys: Keys, name: string, signal: AbortSignal): Promise<LeaseRecord[]> {
  const key = keys.lease(name)
  const records: LeaseRecord[] = []
  let position = 0
  for (let after = '0'; after !== ''; ) {
    const request = { verb: 'inspect', key, id: '-', parameters: `0 0 0 ${after}` }
    const { now, parts } = await requests.put(request, signal, (answer, now) => ({ now, parts: answer as unknown[] }))
    const [lease = '', remaining = '', next = '', ...queue] = parts.map(String)
    if (records.length === 0 && lease) records.push(holderOf(name, lease, Number(remaining)))
    for (let index = 0; index < queue.length; index += 2) {
      const [lapses, waiter] = [Number(queue[index]), queue[index + 1] ?? '']
      records.push(waiterOf(name, waiter, lapses - now, position++))
    }
    signal.throwIfAborted()
    after = next
  }
  return records
}

/** All names that begin with `prefix` and are, or recently were, held or waited for. */
export async function namesFrom(
  requests: Requests,
  keys: Keys,
  prefix: string,
  signal: AbortSignal,
): Promise<string[]> {
  const found = new Set<string>()
  const wire = await requests.wire()
  const scan = async (send: (args: readonly string[]) => Promise<unknown>): Promise<void> => {
    for (let cursor = '0'; ; ) {
      signal.throwIfAborted()
      const reply = await send(['SCAN', cursor, 'MATCH', keys.pattern(prefix), 'COUNT', '1000'])
      const [next, page] = reply as [unknown, unknown[]]
      for (const key of page) {
        const name = keys.nameOf(String(key))
        if (name?.startsWith(prefix)) found.add(name) // the key of `a{` matches the pattern of `a{}`
      }
      cursor = String(next)
      if (cursor === '0') return
    }
  }
  try {
    await Promise.all((await wire.masters()).map(scan))
  } catch (error) {
    throw signal.aborted ? signal.reason : requests.failure(error)
  }
  return [...found]
}
