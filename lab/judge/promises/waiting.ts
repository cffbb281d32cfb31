import { type Acquisition, NEVER } from '../acquisition.ts'
import { Calm, lowerBound } from '../calm.ts'
import { ms } from '../format.ts'
import { STALL } from '../overlap.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** How waiters were served in calm times. */
export interface Waiting {
  /** How long after each release with waiters the next granted request left, in milliseconds: longest last. */
  readonly delays: readonly number[]
  /** How many requests that came later were granted before a waiter, at most. */
  readonly overtaken: number
  readonly violations: readonly Violation[]
}

/** Of so many releases one may be followed late: what delays a server is not measured. */
const TOLERANCE = 100
/** Late releases of a short run that are tolerated. */
const TOLERATED = 2

/**
 * In calm times a release wakes the first waiter where waiters are notified, and nobody is overtaken again and again where
 * they are served in order. A waiter that lost its grace period to a busy machine is behind all others once, so each
 * client may overtake it once.
 */
export function waitingOf(trace: Trace): Waiting {
  const { store, acquisitions, run } = trace
  const calm = new Calm(trace)
  const names = run.names.filter(name => !run.shared?.[name])
  const byName = Map.groupBy(acquisitions.values(), ({ name }) => name)
  const limit = limitOf(trace)
  const each = names.map(name => {
    const asked = (byName.get(name) ?? []).toSorted((one, other) => one.asked - other.asked)
    return {
      follows: store?.waiting === 'pushed' ? followsOf(trace, calm, name, asked, limit) : [],
      overtaken: store?.order === 'first come, first served' ? overtakenOf(trace, calm, name, asked, limit) : [],
    }
  })
  const follows = each.flatMap(({ follows }) => follows)
  const overtaken = each.flatMap(({ overtaken }) => overtaken)
  const late = follows.filter(({ delay }) => delay > limit)
  const isLate = late.length > Math.max(TOLERATED, follows.length / TOLERANCE)
  return {
    delays: follows.map(({ delay }) => delay).sort((one, other) => one - other),
    overtaken: overtaken.reduce((most, { ahead }) => Math.max(most, ahead.length), 0),
    violations: [
      ...(isLate ? late.map(follow => unwoken(follow, limit)) : []),
      ...overtaken.flatMap(waiter => starved(waiter, run.clients)),
    ],
  }
}

/**
 * A release is known to its holder after a round trip, when the waiter was told as well. With half a round trip for the
 * message, its request has left by then. A release took as long as the machine let it, so this grows with the load.
 */
function limitOf({ acquisitions }: Trace): number {
  const trips = [...acquisitions.values()]
    .filter(({ freed }) => freed !== NEVER)
    .map(({ freed, releasing }) => freed - releasing)
    .sort((one, other) => one - other)
  return 2 * STALL + 1.5 * (trips[Math.floor(trips.length / 2)] ?? 0)
}

/** A release, a client that waited, and what followed. */
interface Follow {
  readonly older: Acquisition
  readonly waiter: Acquisition
  readonly newer: Acquisition | undefined
  readonly delay: number
}

function followsOf(
  { holdings, end }: Trace,
  calm: Calm,
  name: string,
  asked: readonly Acquisition[],
  limit: number,
): Follow[] {
  const holders = (holdings.get(name) ?? []).map(({ acquisition }) => acquisition)
  return holders.flatMap((older, index): Follow[] => {
    const { releasing, freed } = older
    // Before, the waiter had its first answer and was notified of releases.
    const since = releasing - limit
    if (freed === NEVER || !calm.covers({ from: since, to: freed + limit })) return []
    const waiting = asked.slice(
      0,
      lowerBound(asked, each => each.asked > since),
    )
    const waiter = waiting.find(
      each => each.settled > freed + limit || (each.granted > releasing && each.granted < NEVER),
    )
    if (!waiter) return []
    const newer = holders[index + 1]
    const sent = Math.min(newer?.sent ?? NEVER, newer?.granted ?? NEVER)
    if (sent === NEVER && end < freed + limit) return []
    return [{ older, waiter, newer, delay: Math.min(sent, end) - freed }]
  })
}

function unwoken({ older, waiter, newer, delay }: Follow, limit: number): Violation {
  const { name, freed, releasing, client } = older
  const what = `client ${client} released it in ${ms(freed - releasing)}, and client ${waiter.client} waited: the next granted request left ${ms(delay)} later; ${ms(limit)} are allowed`
  return {
    promise: 'waiting',
    at: freed + delay,
    name,
    what,
    ops: [...new Set([older, waiter, newer].flatMap(each => each?.op ?? []))],
  }
}

/** A waiter in one undisturbed time, and the requests that came later and were granted. */
interface Overtaken {
  readonly waiter: Acquisition
  readonly from: number
  readonly to: number
  readonly ahead: readonly Acquisition[]
}

function overtakenOf(
  { grants, end }: Trace,
  calm: Calm,
  name: string,
  asked: readonly Acquisition[],
  limit: number,
): Overtaken[] {
  const granted = grants.get(name) ?? []
  return asked.flatMap(waiter => {
    const wait = { from: waiter.asked, to: Math.min(waiter.settled, end) }
    if (wait.to - wait.from < limit) return []
    return calm.of(waiter.client, wait).map(({ from, to }) => {
      const first = lowerBound(granted, each => each.granted > from)
      const meanwhile = granted.slice(
        first,
        lowerBound(granted, each => each.granted >= to),
      )
      return { waiter, from, to, ahead: meanwhile.filter(each => each.asked > from + limit) }
    })
  })
}

function starved({ waiter, from, to, ahead }: Overtaken, most: number): Violation[] {
  const last = ahead[most]
  if (!last) return []
  const { name, client, op } = waiter
  const what = `client ${client} waited for ${ms(to - from)} in calm times; requests that came later and were granted: ${ahead.length}; allowed: ${most}`
  return [{ promise: 'waiting', at: last.granted, name, what, ops: [op, last.op] }]
}
