import { Name } from '../../../src/stores/rules/name.ts'
import type { Holder } from '../../../src/stores/rules/state.ts'
import { ms } from '../format.ts'
import { Lease } from '../lease.ts'
import { mayBeGranted, type Request } from '../request.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** Milliseconds for which a store refuses a claim that was withdrawn before it arrived (R4). */
const REFUSED = 5_000

/** The most leases of unknown end that are tried in all combinations. Of more, those that end first count as ended. */
const MOST_DOUBTS = 8

/**
 * Each answer of the store is one that the rules of a name allow, even if a wrong one harms nobody. The class decides each
 * grant again, in the order of tokens, in addition to the leases that must still hold. The order of waiters is not compared:
 * a refusal does not show who was ahead.
 */
export function answers(trace: Trace): Violation[] {
  return [...Map.groupBy(trace.requests, ({ asked }) => asked.name)].flatMap(([name, all]) => {
    const claims = [...Map.groupBy(all, ({ asked }) => asked.claim).values()]
    const granted = claims.flatMap(requests => {
      const held = requests.filter(({ is }) => is === 'held')
      const byToken = Map.groupBy(held, ({ answer }) => answer?.token)
      return [...byToken.values()].map(each => new Lease(requests, each, trace))
    })
    const unanswered = claims.filter(requests => requests.some(mayBeGranted)).map(each => new Lease(each, [], trace))
    const found = [...claims.flatMap(withdrawals), ...granted.flatMap(refusals), ...grants(granted, unanswered)]
    return found.map(({ claims: ids, client, at, what }): Violation => {
      return { promise: 'answers', at, name, what: `client ${client} ${what}`, ops: [], claims: ids }
    })
  })
}

interface Found {
  readonly claims: readonly string[]
  readonly client: number
  readonly at: number
  /** What happened to the client. */
  readonly what: string
}

function find({ asked, received }: Request, what: string): Found {
  return { claims: [asked.claim], client: asked.client, at: received, what }
}

/** What the store answered to a claim after it was withdrawn. */
function withdrawals(requests: readonly Request[]): Found[] {
  return requests.flatMap(request => {
    const { is, asked, sent } = request
    const answered = requests.filter(each => each.asked.verb === 'release' && each.received < sent)
    const gone = answered.findLast(each => each.is === 'gone')
    if (is === 'held' && gone && sent < gone.received + REFUSED)
      return [find(request, 'was answered that its claim is gone, and then that it holds')]
    const [first] = answered
    // A copy of an acquire may have arrived after the first release.
    const isSettled = requests.every(each => each.asked.verb === 'release' || each.received < (first?.sent ?? 0))
    if (is === 'released' && asked.verb === 'release' && first && isSettled)
      return [find(request, 'got `released` twice for one claim')]
    return []
  })
}

/** What the store answered about this lease, although it held. */
function refusals(lease: Lease): Found[] {
  const [{ answer } = {}] = lease.held
  return lease.requests.flatMap(request => {
    const { is, asked, sent, received } = request
    if (lease.held.includes(request)) {
      const [before, now] = [slotsOf(answer?.slots), slotsOf(request.answer?.slots)]
      return before === now ? [] : [find(request, `held ${before}, and then ${now}, with one token`)]
    }
    if (is !== 'busy' && is !== 'gone') return []
    // For a time a withdrawn claim is refused (R4).
    const isGranted = asked.verb === 'release' ? lease.grantedBefore < sent + REFUSED : lease.grantedBefore < sent
    const end = lease.earliestEnd(request)
    if (!isGranted || end <= received) return []
    return [find(request, `was answered that its claim is ${is}, ${ms(end - received)} before its end`)]
  })
}

function slotsOf(slots: readonly number[] = []): string {
  return slots.length === 1 ? `slot ${slots[0]}` : `slots ${slots.join(', ')}`
}

/** The leases of a name, in the order of their tokens. */
function* grants(granted: readonly Lease[], unanswered: readonly Lease[]): Iterable<Found> {
  const leases = granted.toSorted((one, other) => Number(one.token - other.token))
  const latest = leases.map(({ grantedBefore }) => grantedBefore)
  for (let index = latest.length - 2; index >= 0; index -= 1)
    latest[index] = Math.min(latest[index] as number, latest[index + 1] as number)
  /** The sets of leases, any of which may be held after the last grant. */
  let possible: readonly (readonly Lease[])[] = [[]]
  for (const [index, lease] of leases.entries()) {
    const { grantedAfter, grantedBefore, token, slots, client, claim } = lease
    const by = latest[index] as number
    const before = leases[index - 1]
    if (before?.token === token) {
      const what = `was granted token ${token}, as client ${before.client} was`
      yield { claims: [claim, before.claim], client, at: grantedBefore, what }
    }
    if (grantedAfter > by) {
      const other = leases.slice(index).find(each => each.grantedBefore === by) as Lease
      const what = `was granted token ${token} after client ${other.client} had received token ${other.token}`
      yield { claims: [claim, other.claim], client, at: grantedBefore, what }
      continue
    }
    const mayBeHeld = unanswered.some(
      each => each.claim !== claim && each.grantedAfter < by && each.latestEnd > grantedAfter,
    )
    const next = possible.flatMap(holders => after(holders, lease, by, mayBeHeld))
    if (next.length === 0) {
      const other = leases.slice(0, index).findLast(each => each.earliestEnd() > by && !fits([each], lease))
      const why = other
        ? `${ms(other.earliestEnd() - by)} before the lease of client ${other.client} ended`
        : 'which the rules do not allow'
      const what = `was granted ${slotsOf(slots)} with token ${token}, ${why}`
      yield { claims: [claim, ...(other ? [other.claim] : [])], client, at: grantedBefore, what }
    }
    possible = distinct(next.length > 0 ? next : [[lease]])
  }
}

/**
 * The sets of leases that may be held after this grant, which was made before `by`. Empty: the rules do not allow it.
 * `mayBeHeld`: a claim without an answer may hold any slots.
 */
function after(holders: readonly Lease[], lease: Lease, by: number, mayBeHeld: boolean): (readonly Lease[])[] {
  const hold = holders.filter(each => each.earliestEnd() > by)
  const doubtful = holders.filter(each => each.earliestEnd() <= by && each.latestEnd > lease.grantedAfter)
  const doubts = doubtful.sort((one, other) => other.earliestEnd() - one.earliestEnd()).slice(0, MOST_DOUBTS)
  if (mayBeHeld) return fits(hold, lease) ? [[...hold, ...doubts.filter(each => fits([each], lease)), lease]] : []
  const found: Lease[][] = []
  for (let bits = 0; bits < 2 ** doubts.length; bits += 1) {
    const others = [...hold, ...doubts.filter((_, index) => (bits & (2 ** index)) > 0)]
    if (slotsOf(slotsFor(others, lease)) === slotsOf(lease.slots)) found.push([...others, lease])
  }
  return found
}

/** The slots that the rules grant to the claim of this lease in addition to the others. */
function slotsFor(others: readonly Lease[], { claim, limit, units }: Lease): readonly number[] | undefined {
  if (others.some(each => each.claim === claim)) return undefined
  const party = { owner: '', note: '', ttl: Infinity }
  const holders = others.map((each, index): Holder => {
    return { ...party, id: each.claim, limit: each.limit, slots: each.slots, token: index + 1, expires: Infinity }
  })
  const state = { holders, waiters: [], gone: new Map(), token: others.length, changed: -Infinity }
  const ruling = new Name(0, state).acquire({ ...party, id: claim, limit, units, grace: 0, queue: false })
  return ruling.held ? ruling.slots : undefined
}

/** Do the rules allow the lease in addition to the others, if lower slots may be in use as well? */
function fits(others: readonly Lease[], lease: Lease): boolean {
  const least = Math.min(lease.limit, ...others.map(({ limit }) => limit))
  const isFree = (slot: number): boolean => slot < least && !others.some(({ slots }) => slots.includes(slot))
  return slotsFor(others, lease) !== undefined && lease.slots.every(isFree)
}

function distinct(sets: readonly (readonly Lease[])[]): (readonly Lease[])[] {
  const byTokens = sets.map((set): [string, readonly Lease[]] => {
    const ordered = set.toSorted((one, other) => Number(one.token - other.token))
    return [ordered.map(({ token }) => token).join(' '), set]
  })
  return [...new Map(byTokens).values()]
}
