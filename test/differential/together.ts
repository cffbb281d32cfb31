import type { Busy } from '../../src/contract/store.ts'
import type { Answer } from './allowed.ts'
import type { Request } from './history.ts'
import type { Op } from './op.ts'
import type { Slack, Watching, Window } from './possible.ts'

/** A request that was carried out, or may have been. */
export interface Sent {
  readonly op: Op
  readonly window: Window
  /** `undefined`: it is not known. */
  readonly answer?: { readonly is: Answer }
  /** The waiters when it was sent. */
  readonly watching: Watching
  /** When its limit is over. */
  readonly until: number
  /** That the claim joins the queue, after it was told so. */
  readonly joinsAfter?: Sent
}

interface Claims {
  /** May it wait now? */
  waits(claim: number): boolean
  /** Does it join the queue? */
  queues(claim: number): boolean
  /** Was it withdrawn? Then the first step of an acquire may be seen until the second one refuses it. */
  isGone(claim: number): boolean
}

/** Requests of which none sees another one between its two steps. */
export function apart(
  { isSplit, joinsLater, grantsLate }: Slack,
  all: readonly Request[],
  { waits, queues, isGone }: Claims,
): readonly Request[] {
  const requests = grantsLate ? all.filter(({ verb }) => verb !== 'break') : all
  const claims = requests.map(each => ('claim' in each ? each.claim : undefined))
  const isFirst = (_: Request, index: number): boolean => claims.indexOf(claims[index]) === index
  if (isSplit)
    return requests.filter((request, index) => {
      const isRefused = (request.verb === 'acquire' || request.verb === 'copy') && isGone(request.claim)
      return request.verb !== 'inspect' && !isRefused && isFirst(request, index)
    })
  if (!joinsLater && !grantsLate) return requests
  // An acquire that is under way may still be granted by the position that its claim had before it was released (R4). Over
  // etcd, it may itself end what the release would have found. Where a claim joins later, others may be told of its position
  // after the release has looked for one, and before that has withdrawn the claim.
  const released = new Set(requests.flatMap(each => (each.verb === 'release' ? [each.claim] : [])))
  const isSeen = (claim: number): boolean =>
    requests.some(({ verb }, index) => claims[index] !== claim && ['acquire', 'copy', 'inspect'].includes(verb))
  const mayWait = (claim: number): boolean =>
    waits(claim) ||
    (joinsLater && queues(claim) && isSeen(claim)) ||
    requests.filter(each => each.verb === 'acquire' && each.claim === claim).length > 1
  return requests.filter((each, index) => {
    const claim = claims[index]
    return claim === undefined || !released.has(claim) || !mayWait(claim) || isFirst(each, index)
  })
}

/** What a claim was told, and that it joins the queue. */
export function partsOf(sent: Sent): readonly Sent[] {
  const { op, answer } = sent
  if (op.verb !== 'acquire' || !op.asker.queue || (answer?.is as Busy | undefined)?.held !== false) return [sent]
  const told: Sent = { ...sent, op: { ...op, asker: { ...op.asker, queue: false } } }
  return [told, { ...sent, joinsAfter: told }]
}

/** Without all but one of the releases that ended the same claim. */
export function withoutCopies(requests: readonly Sent[]): readonly Sent[] {
  const released = new Set<string>()
  return requests.filter(({ op, answer }) => {
    if (op.verb !== 'release' || answer?.is !== 'released') return true
    return released.size < released.add(op.id).size
  })
}
