import type { Busy, Grant } from '../../src/contract/store.ts'
import { allowed, type Leniency } from './allowed.ts'
import { merged } from './merge.ts'
import { idOf, type Op } from './op.ts'
import {
  isOneStep,
  joining,
  type Outcome,
  outcomes,
  type Possible,
  START,
  Undecided,
  type Watching,
  type Window,
} from './possible.ts'
import { partsOf, type Sent, withoutCopies } from './together.ts'

const MOST_STATES = 200

/** All states that a name may have at the server, by the answers so far. */
export class States {
  readonly #leniency: Leniency
  #states: readonly Possible[] = [START]
  #last = Number.NEGATIVE_INFINITY

  constructor(leniency: Leniency) {
    this.#leniency = leniency
  }

  get all(): readonly Possible[] {
    return this.#states
  }

  /** Goes on with those of the states. False, and nothing changes: with none. */
  keep(isTrue: (state: Possible) => boolean): boolean {
    const left = this.#states.filter(isTrue)
    if (left.length > 0) this.#states = left
    return left.length > 0
  }

  change(change: (state: Possible) => Possible): void {
    this.#states = this.#states.map(change)
  }

  /** The clock was set back: what comes next is decided at `now` or later. */
  restart(now: number): void {
    this.#last = now
    this.change(state => ({ ...state, expected: new Map() }))
  }

  /** Adds requests that were under way together, in each order. What the rules do not allow, or `undefined`. */
  add(requests: readonly Sent[]): string | undefined {
    let problem: string | undefined
    const after: Possible[] = []
    const go = (state: Possible, left: readonly Sent[]): void => {
      if (left.length === 0) after.push(state)
      for (const next of left) {
        if (next.joinsAfter && left.includes(next.joinsAfter)) continue
        const others = left.filter(each => each !== next)
        for (const to of this.#waiting(state, next, others)) go(to, left)
        for (const to of this.#after(state, next, requests.length === 1)) {
          if (typeof to === 'string') problem ??= `${JSON.stringify(next.op, forPeople)}: ${to}`
          else go(to, others)
        }
      }
    }
    const { joinsLater, joinsApart } = this.#leniency
    const parts = joinsLater && requests.length > 1 ? requests.flatMap(partsOf) : requests
    for (const state of this.#states) go(state, parts)
    if (after.length === 0 && joinsApart && requests.length > 1)
      for (const state of this.#states) go(state, requests.flatMap(partsOf))
    // Of two releases of one claim, both may be told that they ended it (R4), if they were under way together.
    if (after.length === 0 && !isOneStep(this.#leniency))
      for (const state of this.#states) go(state, withoutCopies(parts))
    this.#last = Math.max(this.#last, ...requests.map(({ window }) => window.sent))
    const { ifLocked } = this.#leniency
    const isLocked = requests.some(
      ({ answer }) => ifLocked && (answer?.is as Busy | undefined)?.retryAfter === ifLocked,
    )
    if (after.length === 0 && isLocked) throw new Undecided('the name was locked')
    if (after.length === 0) return problem
    this.#states = merged(after)
    if (this.#states.length > MOST_STATES) throw new Undecided(`${this.#states.length} states are possible`)
    return undefined
  }

  /** The states in which a claim that is granted has joined the queue before, as some of the `others` may see. */
  *#waiting(state: Possible, { op, window, answer, watching }: Sent, others: readonly Sent[]): Iterable<Possible> {
    const isGranted = op.verb === 'acquire' && op.asker.queue && (answer?.is as Grant | undefined)?.held
    const { holders, waiters } = state.early
    const isNew = [...holders, ...waiters].every(({ id }) => id !== idOf(op))
    const { isSplit, joinsFirst } = this.#leniency
    const isSeen = isSplit ? others.length > 0 : joinsFirst && others.some(each => each.op.verb === 'inspect')
    if (!isSeen || !isGranted || !isNew) return
    const isFirst = waiters.every(({ isPassed }) => isPassed)
    for (const { to } of joining(state, op, window, watching, this.#leniency)) {
      const { early, late } = to
      if (!early.waiters.some(({ id }) => id === idOf(op))) continue // it was withdrawn
      // Its grace period begins.
      if (isFirst)
        yield { ...to, early: { ...early, changed: window.sent }, late: { ...late, changed: window.received } }
      else yield to
    }
  }

  *#after(
    state: Possible,
    { op, window, answer, watching, until, joinsAfter }: Sent,
    isAlone: boolean,
  ): Iterable<Possible | string> {
    for (const from of this.#arrivals(state, window, watching)) {
      if (joinsAfter) {
        const holds = from.early.holders.some(({ id }) => id === idOf(op))
        if (holds) yield from
        else for (const { to } of joining(from, op, window, watching, this.#leniency)) yield to
      } else if (!answer) yield { ...from, pending: [...from.pending, { op, sent: window.sent, received: until }] }
      else
        for (const outcome of this.#outcomes(from, op, window, watching, isAlone))
          yield allowed(outcome, op, answer.is, window, watching, this.#leniency, isAlone)
    }
  }

  #outcomes(from: Possible, op: Op, window: Window, watching: Watching, isAlone: boolean): Outcome[] {
    const leniency = this.#leniency
    const found = outcomes(from, op, window, watching, leniency)
    const mayJoin = leniency.isSplit && !isAlone && op.verb === 'acquire' && op.asker.queue
    return mayJoin ? [...found, ...joining(from, op, window, watching, leniency)] : found
  }

  /** The state, and the states if requests without an answer arrive before the end of the window. */
  *#arrivals(state: Possible, { sent, received }: Window, watching: Watching): Iterable<Possible> {
    const pending = state.pending.filter(each => each.received >= sent)
    yield { ...state, pending }
    for (const [index, each] of state.pending.entries()) {
      const latest = this.#leniency.countsFromSight ? received : Math.min(received, each.received)
      const window = { sent: Math.max(each.sent, this.#last), received: latest }
      if (window.sent > window.received) continue
      const left = { ...state, pending: state.pending.toSpliced(index, 1) }
      for (const { to } of outcomes(left, each.op, window, watching, this.#leniency))
        yield* this.#arrivals(to, { sent, received }, watching)
    }
  }
}

/** For `JSON.stringify`, which knows no `bigint`. */
export function forPeople(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
