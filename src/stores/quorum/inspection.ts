import type { LeaseError } from '../../contract/errors.ts'
import { request } from '../../contract/request.ts'
import type { LeaseRecord, NodeRecord, Query } from '../../contract/store.ts'
import { PATIENCE } from '../wire/timeouts.ts'
import { mostAlike, recordsOf } from './holdings.ts'
import type { Answer, Claims, Holding, Member, Sight } from './member.ts'
import type { Node } from './node.ts'
import { type Quorum, type Tally, whenAll } from './quorum.ts'

/** The number of names that are read in parallel. */
const PAGE = 100

/** The number of pages of keys to search before the names that were found are read. */
const FEW = 10

/**
 * Yields the nodes first, even if they are too few for a majority, then the records of the names. The names are sorted,
 * unless the search among other keys takes long. Rejects without a majority. `assertWanted` is called before each page, and
 * throws if nobody waits for it any more.
 */
export async function* inspect(
  quorum: Quorum,
  query: Query,
  assertWanted: () => void,
): AsyncIterable<LeaseRecord | NodeRecord> {
  // A search for names does not tell the states. So the nodes are also asked for a name, which need not exist.
  const first = await quorum.poll(firstPage('name' in query ? query.name : query.prefix), whenAll)
  yield* quorum.nodes.map(node => node.record)
  if ('name' in query) {
    yield* await recordsIn(quorum, query.name, first)
    return
  }
  let pages = 0
  let names: string[] = []
  for await (const found of search(quorum, query.prefix, first)) {
    if (pages > 0) await query.between?.()
    assertWanted()
    pages += 1
    names.push(...found)
    if (pages < FEW) continue
    yield* records(quorum, names, assertWanted)
    names = []
  }
  yield* records(quorum, names, assertWanted)
}

/**
 * Searches the nodes that answered, one page of each at a time, and yields the names that no earlier page had. A node whose
 * page fails has failed in `tally` too, but does not count as unresponsive: leases must not depend on searches. Rejects
 * without a majority.
 */
async function* search(quorum: Quorum, prefix: string, tally: Tally<unknown>): AsyncGenerator<string[], void> {
  assertMajority(quorum, tally)
  const known = new Set<string>()
  let found: string[] = []
  let searches = answersOf(tally).map(({ node }) => ({ node, pages: node.member.names(prefix) }))
  const hasPage = async ({ node, pages }: (typeof searches)[number]): Promise<boolean> => {
    try {
      const { done, value } = await request(quorum.environment.clock, PATIENCE, () => pages.next())
      const names = (value ?? []).filter(name => !known.has(name))
      for (const name of names) known.add(name)
      found.push(...names)
      return !done
    } catch (error) {
      tally.failed.push({ node, error: error as LeaseError })
      return false
    }
  }
  for (;;) {
    const havePages = await Promise.all(searches.map(hasPage))
    assertMajority(quorum, tally)
    searches = searches.filter((_, index) => havePages[index])
    if (searches.length === 0) return
    yield found
    found = []
  }
}

async function* records(quorum: Quorum, names: string[], assertWanted: () => void): AsyncIterable<LeaseRecord> {
  names.sort()
  while (names.length > 0) {
    assertWanted()
    const look = async (name: string): Promise<LeaseRecord[]> =>
      recordsIn(quorum, name, await quorum.poll(firstPage(name), whenAll))
    yield* (await Promise.all(names.splice(0, PAGE).map(look))).flat()
  }
}

/**
 * The claims that may have a majority, or the one of them with the token `of`, and the highest token of their votes. A node
 * is waited for only if it could decide that. Rejects without a majority.
 */
export async function holdersOf(quorum: Quorum, name: string, of: bigint | undefined): Promise<Claims> {
  const { majority } = quorum
  const judge = (tally: Tally<Sight>): Tally<Sight> | undefined => {
    const most = mostAlike(votesIn(tally)).length
    const isClear = most >= majority || most + missingIn(tally) < majority
    return isClear || tally.pending === 0 ? tally : undefined
  }
  const tally = await quorum.poll(member => member.look(name), judge)
  assertMajority(quorum, tally)
  const votes = votesIn(tally)
  const claims = new Map<string, number>()
  for (const { id } of votes) {
    const own = votes.filter(vote => vote.id === id)
    const isWanted = of === undefined || own.some(({ token }) => BigInt(token) === of)
    if (isWanted && own.length + missingIn(tally) >= majority)
      claims.set(id, Math.max(...own.map(({ token }) => token)))
  }
  return claims
}

function votesIn(tally: Tally<Sight>): Holding[] {
  return answersOf(tally).flatMap(({ value }) => value.holder ?? [])
}

function missingIn({ pending, failed }: Tally<unknown>): number {
  return pending + failed.length
}

function firstPage(name: string): (member: Member) => Promise<Answer<Sight>> {
  return member => member.look(name, 0)
}

async function recordsIn(quorum: Quorum, name: string, tally: Tally<Sight>): Promise<LeaseRecord[]> {
  assertMajority(quorum, tally)
  const sights = await Promise.all(answersOf(tally).map(({ node, value }) => wholeQueue(node, name, value)))
  return recordsOf(name, sights, quorum.majority, tally.failed.length)
}

/** Reads the rest of a long queue, page by page. If the node fails meanwhile, the pages read so far count. */
async function wholeQueue(node: Node, name: string, first: Sight): Promise<Sight> {
  const queue = [...first.queue]
  for (let page: Sight | undefined = first; page?.hasMore; queue.push(...(page?.queue ?? [])))
    page = await node
      .ask(member => member.look(name, queue.length))
      .then(
        ({ value }) => value,
        () => undefined,
      )
  return { holder: first.holder, queue }
}

/** Quarantined nodes count too, so that the leases they still know are shown. */
function answersOf<Value>(tally: Tally<Value>): { readonly node: Node; readonly value: Value }[] {
  return [...tally.counted, ...tally.quarantined]
}

/** Rejects without a majority. */
function assertMajority(quorum: Quorum, tally: Tally<unknown>): void {
  const { refusal } = quorum
  if (refusal) throw refusal
  if (tally.failed.length > quorum.size - quorum.majority) throw quorum.unavailable(tally)
}
