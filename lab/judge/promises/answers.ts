import { Name } from '../../../src/stores/rules/name.ts'
import type { Holder } from '../../../src/stores/rules/state.ts'
import { ms } from '../format.ts'
import { Lease } from '../lease.ts'
import type { Request } from '../request.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** For so many milliseconds a store refuses a claim that was withdrawn before it arrived (R4). */
const REFUSED = 5_000

/** The most leases of a name of which it is not known whether they have ended. Those that may end first are taken to have. */
const MOST_DOUBTS = 8

/**
 * What stores answered, by the rules of a name: no answer is one that the rules do not allow, whether or not anybody was
 * harmed. Each grant is decided again, in the order of tokens, beside the leases that cannot have ended by then. The order
 * of waiters is not compared: whom a refusal left in the queue is not known.
 */
export function answers(trace: Trace): Violation[] {
  const mayEnd = trace.faults.filter(({ changesClock, forgets }) => changesClock === true || forgets === true)
  const ends = trace.run.endsWithConnection === true
  return [...Map.groupBy(trace.requests, ({ asked }) => asked.name)].flatMap(([name, all]) => {
    const claims = [...Map.groupBy(all, ({ asked }) => asked.claim).values()]
    const granted = claims.flatMap(requests => {
      const held = requests.filter(({ is }) => is === 'held')
      const byToken = Map.groupBy(held, ({ answer }) => answer?.token)
      return [...byToken.values()].map(each => new Lease(requests, each, mayEnd, ends))
    })
    const unanswered = claims
      .filter(requests => requests.some(({ asked, is }) => asked.verb === 'acquire' && is === undefined))
      .map(requests => new Lease(requests, [], mayEnd, ends))
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
      return [find(request, 'was answered twice that its claim is released')]
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
    // A claim that is granted after it was withdrawn arrived too late, and should have been refused.
    const isGranted = asked.verb === 'release' ? lease.by < sent + REFUSED : lease.by < sent
    const end = lease.end(request)
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
  const latest = leases.map(({ by }) => by)
  for (let index = latest.length - 2; index >= 0; index -= 1)
    latest[index] = Math.min(latest[index] as number, latest[index + 1] as number)
  /** The sets of leases that may have been held after the last grant. */
  let possible: readonly (readonly Lease[])[] = [[]]
  for (const [index, lease] of leases.entries()) {
    const { from, token, slots, client, claim } = lease
    const by = latest[index] as number
    const before = leases[index - 1]
    if (before?.token === token) {
      const what = `was granted token ${token}, which client ${before.client} was granted`
      yield { claims: [claim, before.claim], client, at: lease.by, what }
    }
    if (from > by) {
      const other = leases.slice(index).find(each => each.by === by) as Lease
      const what = `was granted token ${token} after client ${other.client} had received token ${other.token}`
      yield { claims: [claim, other.claim], client, at: lease.by, what }
      continue
    }
    const mayBeHeld = unanswered.some(each => each.claim !== claim && each.from < by && each.over > from)
    const next = possible.flatMap(holders => after(holders, lease, by, mayBeHeld))
    if (next.length === 0) {
      const other = leases.slice(0, index).findLast(each => each.end() > by && !fits([each], lease))
      const why = other
        ? `${ms(other.end() - by)} before the lease of client ${other.client} ended`
        : 'which the rules give to no claim then'
      const what = `was granted ${slotsOf(slots)} with token ${token}, ${why}`
      yield { claims: [claim, ...(other ? [other.claim] : [])], client, at: lease.by, what }
    }
    possible = distinct(next.length > 0 ? next : [[lease]])
  }
}

/**
 * The sets of leases that may be held once this one is granted, by `by`, beside some of these. None: it cannot be. `mayBeHeld`:
 * any slots may be held by a claim that got no answer.
 */
function after(holders: readonly Lease[], lease: Lease, by: number, mayBeHeld: boolean): (readonly Lease[])[] {
  const hold = holders.filter(each => each.end() > by)
  const doubtful = holders.filter(each => each.end() <= by && each.over > lease.from)
  const doubts = doubtful.sort((one, other) => other.end() - one.end()).slice(0, MOST_DOUBTS)
  if (mayBeHeld) return fits(hold, lease) ? [[...hold, ...doubts.filter(each => fits([each], lease)), lease]] : []
  const found: Lease[][] = []
  for (let bits = 0; bits < 2 ** doubts.length; bits += 1) {
    const others = [...hold, ...doubts.filter((_, index) => (bits & (2 ** index)) > 0)]
    if (slotsOf(given(others, lease)) === slotsOf(lease.slots)) found.push([...others, lease])
  }
  return found
}

/** The slots that the rules give to the claim of this lease beside the others. */
function given(others: readonly Lease[], { claim, limit, units }: Lease): readonly number[] | undefined {
  if (others.some(each => each.claim === claim)) return undefined
  const party = { owner: '', note: '', ttl: Infinity }
  const holders = others.map((each, index): Holder => {
    return { ...party, id: each.claim, limit: each.limit, slots: each.slots, token: index + 1, expires: Infinity }
  })
  const state = { holders, waiters: [], gone: new Map(), token: others.length, changed: -Infinity }
  const ruling = new Name(0, state).acquire({ ...party, id: claim, limit, units, grace: 0, queue: false })
  return ruling.held ? ruling.slots : undefined
}

/** Do the rules allow the lease beside the others, if lower slots may be in use as well? */
function fits(others: readonly Lease[], lease: Lease): boolean {
  const least = Math.min(lease.limit, ...others.map(({ limit }) => limit))
  const isFree = (slot: number): boolean => slot < least && !others.some(({ slots }) => slots.includes(slot))
  return given(others, lease) !== undefined && lease.slots.every(isFree)
}

function distinct(sets: readonly (readonly Lease[])[]): (readonly Lease[])[] {
  const byTokens = sets.map((set): [string, readonly Lease[]] => {
    const ordered = set.toSorted((one, other) => Number(one.token - other.token))
    return [ordered.map(({ token }) => token).join(' '), set]
  })
  return [...new Map(byTokens).values()]
}
