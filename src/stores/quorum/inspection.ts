import type { LeaseRecord, NodeRecord, Query } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { mostAlike, recordsOf } from './holdings.ts'
import type { Answer, Member, Sight } from './member.ts'
import type { Node } from './node.ts'
import { type Quorum, type Tally, whenAll } from './quorum.ts'

/** The number of names that are read in parallel. */
const PAGE = 100

/**
 * Yields the nodes first, even if they are too few for a majority, then the records of the names. Rejects without a
 * majority. `assertWanted` is called before each page of names, and throws if nobody waits for it any more.
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
  assertWanted()
  const tally = await quorum.poll(member => member.names(query.prefix), whenAll, { timeout: LONGEST_REQUEST })
  assertMajority(quorum, tally)
  const names = [...new Set([...tally.counted, ...tally.quarantined].flatMap(({ value }) => value))].sort()
  while (names.length > 0) {
    assertWanted()
    const look = async (name: string): Promise<LeaseRecord[]> =>
      recordsIn(quorum, name, await quorum.poll(firstPage(name), whenAll))
    yield* (await Promise.all(names.splice(0, PAGE).map(look))).flat()
  }
}

/** The id of the claim that has the most votes with this token. Rejects without a majority. */
export async function claimWith(quorum: Quorum, name: string, token: bigint): Promise<string | undefined> {
  const tally = await quorum.poll(firstPage(name), whenAll)
  assertMajority(quorum, tally)
  const votes = [...tally.counted, ...tally.quarantined].flatMap(({ value }) => value.holder ?? [])
  return mostAlike(votes.filter(vote => BigInt(vote.token) === token))[0]?.id
}

function firstPage(name: string): (member: Member) => Promise<Answer<Sight>> {
  return member => member.look(name, 0)
}

async function recordsIn(quorum: Quorum, name: string, tally: Tally<Sight>): Promise<LeaseRecord[]> {
  assertMajority(quorum, tally)
  const pages = [...tally.counted, ...tally.quarantined]
  const sights = await Promise.all(pages.map(({ node, value }) => wholeQueue(node, name, value)))
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

/** Rejects without a majority. Quarantined nodes count too, so that the leases they still know are shown. */
function assertMajority(quorum: Quorum, tally: Tally<unknown>): void {
  const { refusal } = quorum
  if (refusal) throw refusal
  if (tally.failed.length > quorum.size - quorum.majority) throw quorum.unavailable(tally)
}
