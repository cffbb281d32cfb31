import { Name, positionLifetime } from '../../src/stores/rules/name.ts'
import { type Holder, type NameState, UNUSED } from '../../src/stores/rules/state.ts'
import { LARGEST_FACTOR } from './history.ts'
import { decide, idOf, type Op, type Ruling, shapeOf } from './op.ts'
import { kept, narrowed, unwritten } from './written.ts'

/** When a request was sent, and when its answer was received. The server decided between them. */
export interface Window {
  readonly sent: number
  readonly received: number
}

/** A waiter that must be woken after `since`, and within a limit after `by`. */
export interface Expected {
  readonly since: number
  readonly by: number
}

/** A request whose answer was lost. It may arrive until its limit is over. */
interface Pending extends Window {
  readonly op: Op
}

/** A state that the name may have at the server. Each of its times lies between that of `early` and that of `late`. */
export interface Possible {
  /** The last request was decided at this time or later. */
  readonly at: number
  readonly early: NameState
  readonly late: NameState
  /** The tokens of the server that are known, by those of the rules. */
  readonly tokens: ReadonlyMap<number, bigint>
  readonly expected: ReadonlyMap<string, Expected>
  readonly pending: readonly Pending[]
}

/** What the rules answer at some time within the window, and the state afterwards. */
export interface Outcome {
  readonly ruling: Ruling
  /** Milliseconds after which a claim that was refused asks again: at least, and at most. */
  readonly retry?: readonly [shortest: number, longest: number]
  /** What an inspection shows: the earliest and the latest times. */
  readonly seen: readonly [early: NameState, late: NameState]
  readonly to: Possible
}

/** How the engine differs from a clock that everybody shares. */
export interface Slack {
  /** Milliseconds: 0 if everybody has the same clock. Servers may count whole milliseconds. */
  readonly precision: number
  /** Milliseconds for which a lease, or a position, of this many lasts at least. */
  lasts(ms: number): number
  /** Milliseconds after which it has certainly ended. */
  ends(ms: number): number
  /** Does an `acquire` join the queue in a step of its own, which others may see? */
  readonly isSplit?: boolean
  /** May an inspection show a claim that is granted as a waiter, while its `acquire` is under way? */
  readonly joinsFirst?: boolean
  /** Does a grant not count what was ended since the store looked? Its token may then be above that of a break. */
  readonly grantsLate?: boolean
  /** Does a claim join the queue in a step after it was told so? */
  readonly joinsLater?: boolean
  /**
   * Does a claim that is refused join the queue by a statement of its own? A grant between the two does not count it, and it
   * is shown the holder of before. This is considered only if no order of whole requests explains the answers.
   */
  readonly joinsApart?: boolean
  /** Does a claim that does not queue pass no waiter, also if that does not ask? */
  readonly triesWait?: boolean
  /** The share of its lifetime for which a position lasts at least. @default LEAST_KEPT */
  readonly keepsFor?: number
  /** Does a holder that asks again get the ttl of its lease, if that is longer than the one it asks for? */
  readonly keepsTtl?: boolean
  /** Does what a request without an answer has set count from when the store sees the record, because nobody knows its age? */
  readonly countsFromSight?: boolean
  /** A renewal, a note, an acquire by a holder, and a release that finds nothing see only their own rows, not what else has ended. */
  readonly isNarrow?: boolean | undefined
}

/** Does the engine read, decide and write a request in one step? */
export function isOneStep({ isSplit, grantsLate, joinsLater }: Slack): boolean {
  return !isSplit && !grantsLate && !joinsLater
}

/** What is known of the waiters. */
export interface Watching {
  /** Those that are watched. */
  readonly watched: ReadonlySet<string>
  /** Those for which their store asks. */
  readonly kept: ReadonlySet<string>
}

const TINY = 0.001
const MOST_DOUBTS = 6

export const START: Possible = {
  at: Number.NEGATIVE_INFINITY,
  early: UNUSED,
  late: UNUSED,
  tokens: new Map(),
  expected: new Map(),
  pending: [],
}

/** Too much happened at about the same time to say what the rules allow. */
export class Undecided extends Error {}

/** Everything that the rules may answer to a request that is decided within the window. */
export function outcomes(from: Possible, op: Op, window: Window, watching: Watching, slack: Slack): Outcome[] {
  const states = [from, ...looks(from, window, watching, slack)]
  return states.flatMap(state =>
    [...verdicts(state, op, window, watching, slack)].map(verdict =>
      outcome(state, op, window, watching, slack, verdict),
    ),
  )
}

/** What the rules answer to a claim that joins the queue, and is not granted yet although it could be. */
export function joining(from: Possible, op: Op, window: Window, watching: Watching, slack: Slack): Outcome[] {
  const blocking: Holder = {
    ...{ id: '', owner: '', note: '', ttl: Infinity, limit: 1, token: 0 },
    ...{ slots: [0], expires: Infinity },
  }
  const blocked = (state: NameState): NameState => ({ ...state, holders: [...state.holders, blocking] })
  const freed = (state: NameState): NameState => ({ ...state, holders: state.holders.filter(({ id }) => id !== '') })
  const found = outcomes({ ...from, early: blocked(from.early), late: blocked(from.late) }, op, window, watching, slack)
  return found.map(({ seen, to, ...outcome }) => ({
    ...outcome,
    seen: [freed(seen[0]), freed(seen[1])],
    to: { ...to, early: freed(to.early), late: freed(to.late) },
  }))
}

/** The states if the store, which asks for waiters, has seen before the request that something was over. */
function looks(from: Possible, { sent }: Window, watching: Watching, slack: Slack): Possible[] {
  const { holders, waiters } = from.early
  const [first = Infinity] = [
    ...holders.map(({ expires }) => expires),
    ...waiters.flatMap(({ id, lapses }) => (watching.kept.has(id) ? [] : [lapses])),
  ].sort((a, b) => a - b)
  if (slack.precision === 0 || first > sent) return []
  const window = { sent: Math.min(Math.max(first, from.at), sent), received: sent }
  const op = { verb: 'look' } as const
  return [...verdicts(from, op, window, watching, slack)]
    .map(verdict => outcome(from, op, window, watching, slack, verdict).to)
    .filter(({ early }) => early.holders.length < holders.length || early.waiters.length < waiters.length)
}

/** By the key of a time: is it over when the request is decided? */
type Verdict = ReadonlyMap<string, boolean>

/** Each combination of the times that may be over, and need not be, within the window. */
function* verdicts(
  from: Possible,
  op: Op,
  { sent, received }: Window,
  { kept }: Watching,
  { triesWait }: Slack,
): Iterable<Verdict> {
  const sure = new Map<string, boolean>()
  const doubts: string[] = []
  const judge = (key: string, early: number, late: number): void => {
    if (late <= sent) sure.set(key, true)
    else if (early > received) sure.set(key, false)
    else doubts.push(key)
  }
  const { early, late } = from
  for (const [index, { id, expires }] of early.holders.entries())
    judge(`h${id}`, expires, (late.holders[index] as Holder).expires)
  for (const [index, { id, lapses, isPassed }] of early.waiters.entries()) {
    if (kept.has(id)) sure.set(`w${id}`, false)
    else judge(`w${id}`, lapses, late.waiters[index]?.lapses ?? lapses)
    // Its store may have asked for it since.
    if (isPassed && (kept.has(id) || late.waiters[index]?.lapses === Infinity)) doubts.push(`p${id}`)
  }
  for (const [id, until] of early.gone) judge(`g${id}`, until, late.gone.get(id) ?? until)
  if (doubts.length > MOST_DOUBTS) throw new Undecided(`${doubts.length} times are in doubt`)
  for (let bits = 0; bits < 2 ** doubts.length; bits += 1) {
    const verdict = new Map(sure)
    for (const [index, key] of doubts.entries()) verdict.set(key, (bits & (2 ** index)) > 0)
    const grace = op.verb === 'acquire' ? firstGrace(early, verdict) : undefined
    if (grace === undefined) yield verdict
    else {
      const mayPass = op.verb === 'acquire' && (op.asker.queue || !triesWait)
      if (sent < late.changed + grace || !mayPass) yield new Map(verdict).set('changed', false)
      if (mayPass && received >= early.changed + grace) yield new Map(verdict).set('changed', true)
    }
  }
}

/** The grace period of the first waiter that counts. */
function firstGrace({ waiters }: NameState, verdict: Verdict): number | undefined {
  return waiters.find(({ id, isPassed }) => !verdict.get(`w${id}`) && (!isPassed || verdict.get(`p${id}`)))?.grace
}

/** The name at `now`, if the times are over, or not, as the verdict says. */
function nameAt(
  state: NameState,
  now: number,
  verdict: Verdict,
  { precision }: Slack,
): { name: Name; given: NameState } {
  const put = (key: string, time: number, after = 0): number => {
    return verdict.get(key) ? Math.min(time, now - after) : Math.max(time, now - after + TINY)
  }
  const grace = firstGrace(state, verdict)
  const given: NameState = {
    ...state,
    holders: state.holders.map(each => {
      // A lease that is longer than its ttl looks as if the clock had been set back.
      return { ...each, ttl: precision > 0 ? Infinity : each.ttl, expires: put(`h${each.id}`, each.expires) }
    }),
    waiters: state.waiters.map(each => {
      const isPassed = each.isPassed && !verdict.get(`p${each.id}`)
      return { ...each, isPassed, lapses: put(`w${each.id}`, each.lapses) }
    }),
    gone: new Map([...state.gone].map(([id, until]) => [id, put(`g${id}`, until)])),
    changed: verdict.has('changed') ? put('changed', state.changed, grace) : state.changed,
  }
  return { name: new Name(now, given, Number.NEGATIVE_INFINITY), given }
}

function outcome(
  from: Possible,
  op: Op,
  { sent, received }: Window,
  watching: Watching,
  slack: Slack,
  verdict: Verdict,
): Outcome {
  const tokenOf = (token: bigint): number => [...from.tokens].find(([, real]) => real === token)?.[0] ?? -1
  const first = nameAt(from.early, sent, verdict, slack)
  const last = nameAt(prolonged(from.late, received, watching.kept), received, verdict, slack)
  const ruling = decide(first.name, op, tokenOf)
  decide(last.name, slack.keepsTtl ? withLongestTtl(op, from.early) : op, tokenOf)
  const seen = [first.name.state, kept(last.name.state, last.given, slack)] as const
  const at = Math.max(from.at, sent)
  // A claim that was withdrawn is refused without a look at what has ended.
  const isRefused = slack.precision > 0 && op.verb === 'acquire' && first.name.state.gone.has(op.asker.id)
  if (op.verb === 'inspect' || isRefused)
    return { ruling, seen, to: { ...from, at, early: first.given, late: last.given } }
  const isGone = ruling.verb === 'release' && ruling.answer === 'gone'
  const id = idOf(op)
  const isHeld = first.given.holders.some(holder => holder.id === id && holder.expires > sent)
  const isOfOne = op.verb === 'renew' || op.verb === 'annotate' || isGone || (op.verb === 'acquire' && isHeld)
  const [decided, decidedLate] =
    slack.isNarrow && isOfOne && id !== undefined
      ? [narrowed(first.name.state, first.given, id), narrowed(last.name.state, last.given, id)]
      : [first.name.state, seen[1]]
  const early = widened(
    unwritten(decided, first.given, sent, slack),
    first.given,
    ms => slack.lasts(ms) - ms - slack.precision,
    sent,
  )
  const late = {
    ...widened(decidedLate, last.given, ms => slack.ends(ms) - ms + slack.precision, received),
    // A store may remember for longer that a claim was withdrawn.
    gone: new Map([...seen[1].gone].map(([id, until]) => [id, last.given.gone.get(id) === until ? until : Infinity])),
  }
  if (JSON.stringify(shapeOf(early)) !== JSON.stringify(shapeOf(late)))
    throw new Undecided('the order of two times is in doubt')
  const ends = [...verdict].flatMap(([key, isOver]) => (isOver ? [endOf(from.early, key)] : []))
  const to = { ...from, at, early, late, expected: expectedAfter() }
  if (ruling.verb !== 'acquire' || ruling.held) return { ruling, seen, to }
  const [shortest, longest] = [
    nameAt(from.early, received, verdict, slack),
    nameAt(prolonged(from.late, sent, watching.kept), sent, verdict, slack),
  ].map(({ name }) => {
    const answer = decide(name, op, tokenOf)
    return answer.verb === 'acquire' && !answer.held ? answer.retryAfter : ruling.retryAfter
  })
  return { ruling, retry: [shortest as number, longest as number], seen, to }

  function expectedAfter(): Possible['expected'] {
    const expected = new Map(from.expected)
    const isAnswered = op.verb === 'acquire' || op.verb === 'release'
    if (id !== undefined && isAnswered) expected.delete(id)
    for (const [waiter, delay] of last.name.wakes(isAnswered ? id : undefined)) {
      const since = Math.min(sent, expected.get(waiter)?.since ?? sent, ...ends)
      if (watching.watched.has(waiter)) expected.set(waiter, { since, by: received + delay })
    }
    const next = candidates(late, received)
    for (const waiter of expected.keys()) if (!next.has(waiter)) expected.delete(waiter)
    return expected
  }
}

/** The wakes that are owed although others may have lapsed until `now`, so that the waiter does not fit any more. */
export function owed({ expected, late }: Possible, now: number, { kept }: Watching): [id: string, wake: Expected][] {
  return [...expected].filter(([id]) => candidates(prolonged(late, now, new Set([...kept, id])), now).has(id))
}

/** The latest times, if the stores of waiters that are kept have just asked for them. */
function prolonged(late: NameState, now: number, kept: ReadonlySet<string>): NameState {
  const waiters = late.waiters.map(each => {
    return kept.has(each.id) ? { ...each, lapses: Math.max(each.lapses, now + positionLifetime(each.ttl)) } : each
  })
  return { ...late, waiters }
}

/** The request of a holder with the longest ttl that its lease may have. */
function withLongestTtl(op: Op, { holders }: NameState): Op {
  if (op.verb !== 'acquire' || holders.every(({ id }) => id !== op.asker.id)) return op
  return { ...op, asker: { ...op.asker, ttl: LARGEST_FACTOR * op.asker.ttl } }
}

function endOf({ holders, waiters }: NameState, key: string): number {
  const id = key.slice(1)
  if (key[0] === 'h') return holders.find(each => each.id === id)?.expires ?? Infinity
  return key[0] === 'w' ? (waiters.find(each => each.id === id)?.lapses ?? Infinity) : Infinity
}

/** The waiters that could be next: those that a change now would wake. */
function candidates(state: NameState, now: number): ReadonlySet<string> {
  const over = { id: '', owner: '', note: '', ttl: 0, limit: 2 ** 31 - 1, token: 0, slots: [], expires: -Infinity }
  return new Set(new Name(now, { ...state, holders: [...state.holders, over] }).wakes().keys())
}

/** Adds to each time that the request has set. `now`: a time that is counted from it. */
function widened(state: NameState, given: NameState, more: (ms: number) => number, now: number): NameState {
  const add = (time: number, before: number | undefined): number => {
    return time === before ? time : time + more(Math.max(time - now, 0))
  }
  const held = new Map(given.holders.map(({ id, expires }) => [id, expires]))
  const kept = new Map(given.waiters.map(({ id, lapses }) => [id, lapses]))
  return {
    ...state,
    holders: state.holders.map(each => ({ ...each, expires: add(each.expires, held.get(each.id)) })),
    waiters: state.waiters.map(each => ({ ...each, lapses: add(each.lapses, kept.get(each.id)) })),
    changed: add(state.changed, given.changed),
  }
}
