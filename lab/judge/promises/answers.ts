import { LARGEST_LIMIT } from '../../../src/store.ts'
import { Name } from '../../../src/stores/rules/name.ts'
import { ms } from '../format.ts'
import { Lease } from '../lease.ts'
import { mayBeGranted, type Request } from '../request.ts'
import { isSplit, type Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** Milliseconds for which a store refuses a claim that was withdrawn before it arrived (R4). */
const REFUSED = 5_000

/** Above any slot that is granted in the lab. */
const MOST_SLOTS = 10_000

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
    const found = [
      ...claims.flatMap(each => withdrawals(each, trace)),
      ...granted.flatMap(lease => contradictions(lease, trace)),
      ...grants(granted, unanswered, trace),
    ]
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
function withdrawals(requests: readonly Request[], trace: Trace): Found[] {
  const releases = requests.filter(({ asked, is }) => asked.verb === 'release' && is !== undefined)
  if (releases.length === 0) return []
  const claim = new Lease(requests, [], trace)
  return requests.flatMap(request => {
    const { is, asked, sent, received } = request
    const answered = releases.filter(each => each.received < sent && !claim.isForgotten(each, received))
    const gone = answered.findLast(each => each.is === 'gone')
    if (is === 'held' && gone && received < gone.sent + REFUSED)
      return [find(request, 'was answered that its claim is gone, and then that it holds')]
    const [first] = answered
    // A copy of an acquire may have arrived after the first release.
    const isSettled = requests.every(each => each.asked.verb === 'release' || each.received < (first?.sent ?? 0))
    if (is === 'released' && asked.verb === 'release' && first && isSettled)
      return [find(request, 'got `released` twice for one claim')]
    return []
  })
}

/** What the store answered about this lease, although it held, or did not hold any more. */
function contradictions(lease: Lease, trace: Trace): Found[] {
  const { grantedAfter, grantedBefore, held, requests, slots } = lease
  if (grantedAfter > grantedBefore) return [find(held[0] as Request, 'holds, although no acquire of it was granted')]
  const denials = requests.filter(({ is, sent }) => is !== undefined && is !== 'held' && sent > grantedBefore)
  return requests.flatMap(request => {
    const { is, asked, sent, received } = request
    if (held.includes(request)) {
      const [before, now] = [slotsOf(slots), slotsOf(request.answer?.slots)]
      if (before !== now) return [find(request, `held ${before}, and then ${now}, with one token`)]
      const denial = denials.find(each => each.received < sent && !lease.isForgotten(each, received))
      return denial ? [find(request, `was answered that its claim is ${denial.is}, and then that it holds`)] : []
    }
    // For a time a withdrawn claim is refused (R4).
    const isLate =
      asked.verb === 'release' && grantedBefore < sent + REFUSED && !lease.isForgotten(request, grantedBefore)
    if ((is !== 'busy' && is !== 'gone') || !(grantedBefore < sent || isLate)) return []
    const end = lease.earliestEnd(request)
    return end > received && !isSplit(trace, sent, received)
      ? [find(request, `was answered that its claim is ${is}, ${ms(end - received)} before its end`)]
      : []
  })
}

function slotsOf(slots: readonly number[] = []): string {
  return slots.length === 1 ? `slot ${slots[0]}` : `slots ${slots.join(', ')}`
}

/** The leases of a name, in the order of their tokens. */
function* grants(granted: readonly Lease[], unanswered: readonly Lease[], trace: Trace): Iterable<Found> {
  const leases = granted.toSorted((one, other) => Number(one.token - other.token))
  const latest = leases.map(({ grantedBefore }) => grantedBefore)
  for (let index = latest.length - 2; index >= 0; index -= 1)
    latest[index] = Math.min(latest[index] as number, latest[index + 1] as number)
  /** Those that may be held after the last grant. */
  let held: readonly Lease[] = []
  for (const [index, lease] of leases.entries()) {
    const { grantedAfter, grantedBefore, token, slots, client, claim } = lease
    const by = latest[index] as number
    const before = leases[index - 1]
    if (before?.token === token) {
      const what = `was granted token ${token}, as client ${before.client} was`
      yield { claims: [claim, before.claim], client, at: grantedBefore, what }
    }
    if (grantedAfter > by && grantedAfter <= grantedBefore) {
      const other = leases.slice(index).find(each => each.grantedBefore === by) as Lease
      const what = `was granted token ${token} after client ${other.client} had received token ${other.token}`
      yield { claims: [claim, other.claim], client, at: grantedBefore, what }
      continue
    }
    const lower = lowerSlots(slots)
    const must = held.filter(each => each.earliestEnd() > by)
    const may = held.filter(each => !must.includes(each) && each.latestEnd > grantedAfter && fits([each], lease, lower))
    // A claim without an answer may hold any slots.
    const isUnclear = unanswered.some(each => {
      return each.claim !== claim && each.grantedAfter < by && each.latestEnd > grantedAfter
    })
    const used = lower.filter(slot => isUnclear || may.some(each => each.slots.includes(slot)))
    if (!isSplit(trace, grantedAfter, by) && !fits(must, lease, used)) {
      const other = must.findLast(each => !fits([each], lease, lower))
      const why = other
        ? `${ms(other.earliestEnd() - by)} before the lease of client ${other.client} ended`
        : 'which the rules do not allow'
      const what = `was granted ${slotsOf(slots)} with token ${token}, ${why}`
      yield { claims: [claim, ...(other ? [other.claim] : [])], client, at: grantedBefore, what }
    }
    held = [...must, ...may, lease]
  }
}

/** The slots below the highest of these that are not among them. */
function lowerSlots(slots: readonly number[]): number[] {
  const highest = Math.min(Math.max(...slots), MOST_SLOTS)
  return Array.from({ length: highest }, (_, slot) => slot).filter(slot => !slots.includes(slot))
}

/** Do the rules grant the lease its slots in addition to the others, while these slots are in use as well? */
function fits(others: readonly Lease[], { claim, limit, units, slots }: Lease, used: readonly number[]): boolean {
  if (others.some(each => each.claim === claim)) return false
  const party = { owner: '', note: '', ttl: Infinity, expires: Infinity, token: 0 }
  const holders = others.map(each => ({ ...party, id: each.claim, limit: each.limit, slots: each.slots }))
  const state = {
    holders: [...holders, ...(used.length > 0 ? [{ ...party, id: '', limit: LARGEST_LIMIT, slots: used }] : [])],
    ...{ waiters: [], gone: new Map(), token: 0, changed: -Infinity },
  }
  const ruling = new Name(0, state).acquire({ ...party, id: claim, limit, units, grace: 0, queue: false })
  return ruling.held && slotsOf(ruling.slots) === slotsOf(slots)
}
