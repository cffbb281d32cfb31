import { LeaseError } from '../../src/index.ts'
import { Acquisition, type Write } from './acquisition.ts'
import type { Event, History } from './history.ts'
import { Request } from './request.ts'
import { slotKey } from './shared.ts'

/** A fault with its end. */
export interface Fault extends Omit<Event<'fault'>, 'kind' | 'until'> {
  until: number
}

/** A granted acquisition, as the holder of a name or of one slot. */
export interface Holding {
  readonly acquisition: Acquisition
  readonly token: bigint
}

/** A history, grouped by acquisition, name and fault. */
export interface Trace {
  readonly history: History
  readonly run: Event<'run'>
  /** When the last event happened. */
  readonly end: number
  readonly acquisitions: ReadonlyMap<number, Acquisition>
  /** The granted ones of each name, in the order in which clients received their grants. */
  readonly grants: ReadonlyMap<string, readonly Acquisition[]>
  /**
   * The same, by what has one holder at a time: the name, or the slot of a shared name (`slotKey`). In the order of their
   * tokens, in which the store granted them: a paused client may receive a grant after the next one was made.
   */
  readonly holdings: ReadonlyMap<string, readonly Holding[]>
  readonly writers: ReadonlyMap<number, { readonly write: Write; readonly acquisition: Acquisition }>
  /** The decisions of the resource on each name, in its order. */
  readonly decisions: ReadonlyMap<string, readonly Event<'accepted' | 'rejected'>[]>
  /** The requests to the store, in the order in which they were sent. */
  readonly requests: readonly Request[]
  readonly faults: readonly Fault[]
  /** When the machine kept processes from running. */
  readonly stalls: readonly Event<'stalled'>[]
  /** When clients had opened their stores. */
  readonly starts: readonly Event<'opened'>[]
  /** What the store promises to waiters, if the history says it. */
  readonly store: Event<'opened'> | undefined
  /** Are late notifications excused by faults that the engine does not promise to tolerate? */
  readonly excuses: boolean
}

/** Throws `INVALID_ARGUMENT` for a history that does not begin with `run`, or has events of an unknown acquisition. */
export function trace(history: History, excuses = true): Trace {
  const run = history[0]
  if (run?.kind !== 'run') throw new LeaseError('INVALID_ARGUMENT', 'a history begins with the event run')
  const reading = new Reading(run.names)
  for (const event of history) reading.read(event)
  for (const list of reading.grants.values()) list.sort((one, other) => one.granted - other.granted)
  const { acquisitions, grants, writers, decisions, faults, stalls, starts } = reading
  const requests = [...reading.requests.values()]
  const holdings = holdingsOf(grants)
  const end = history.at(-1)?.at ?? 0
  const read = { acquisitions, grants, holdings, writers, decisions, requests, faults, stalls, starts }
  return { history, run, end, ...read, store: starts[0], excuses }
}

function holdingsOf(grants: ReadonlyMap<string, readonly Acquisition[]>): Map<string, Holding[]> {
  const holdings = new Map<string, Holding[]>()
  const add = (key: string, holding: Holding): void => {
    const all = holdings.get(key)
    if (all) all.push(holding)
    else holdings.set(key, [holding])
  }
  for (const acquisition of [...grants.values()].flat()) {
    const { name, token, slots } = acquisition
    if (slots.size === 0) add(name, { acquisition, token })
    else for (const [slot, own] of slots) add(slotKey(name, slot), { acquisition, token: own })
  }
  for (const all of holdings.values()) all.sort((one, other) => Number(one.token - other.token))
  return holdings
}

/**
 * For each of these holders, which are in the order of their tokens: the first later grant that a client received. The
 * store had ended its lease before.
 */
export function nextGrants(holders: readonly Acquisition[]): (Acquisition | undefined)[] {
  let first: Acquisition | undefined
  const backwards = holders.toReversed().map(each => {
    const next = first
    if (!first || each.granted < first.granted) first = each
    return next
  })
  return backwards.reverse()
}

class Reading {
  readonly acquisitions = new Map<number, Acquisition>()
  readonly grants: Map<string, Acquisition[]>
  readonly writers = new Map<number, { write: Write; acquisition: Acquisition }>()
  readonly decisions: Map<string, Event<'accepted' | 'rejected'>[]>
  readonly requests = new Map<number, Request>()
  readonly faults: Fault[] = []
  readonly stalls: Event<'stalled'>[] = []
  readonly starts: Event<'opened'>[] = []
  readonly #open = new Map<number, Set<Acquisition>>()

  constructor(names: readonly string[]) {
    this.grants = new Map(names.map(name => [name, []]))
    this.decisions = new Map(names.map(name => [name, []]))
  }

  read(event: Event): void {
    switch (event.kind) {
      case 'asked': {
        const acquisition = new Acquisition(event)
        this.acquisitions.set(event.op, acquisition)
        this.#openOf(event.client).add(acquisition)
        break
      }
      case 'granted': {
        const acquisition = this.#of(event)
        acquisition.granted = event.at
        acquisition.sent = event.asked
        acquisition.token = BigInt(event.token)
        acquisition.role = event.role
        acquisition.slots = new Map(event.slots?.map(({ slot, token }) => [slot, BigInt(token)]))
        this.grants.get(event.name)?.push(acquisition)
        break
      }
      case 'requested':
        this.requests.set(event.request, new Request(event))
        break
      case 'answered': {
        const request = this.requests.get(event.request)
        if (request) request.answer = event
        break
      }
      case 'believed':
        this.#of(event).checks.push(event)
        break
      case 'failed':
      case 'lost':
      case 'releasing': {
        const acquisition = this.#of(event)
        acquisition[event.kind] = Math.min(acquisition[event.kind], event.at)
        if (event.kind !== 'lost') this.#openOf(event.client).delete(acquisition)
        break
      }
      case 'died':
        for (const acquisition of this.#openOf(event.client)) acquisition.died = event.at
        this.#open.delete(event.client)
        break
      case 'writing': {
        const acquisition = this.#of(event)
        const write = { write: event.write, token: BigInt(event.token), at: event.at }
        acquisition.writes.push(write)
        this.writers.set(event.write, { write, acquisition })
        break
      }
      case 'wrote':
      case 'refused':
      case 'unsure': {
        const writer = this.writers.get(event.write)
        if (writer) writer.write.answer = event.kind
        break
      }
      case 'accepted':
      case 'rejected': {
        const decisions = this.decisions.get(event.name)
        const writer = this.writers.get(event.write)
        if (writer) writer.write.decision = { kind: event.kind, at: event.at, order: decisions?.length ?? 0 }
        decisions?.push(event)
        break
      }
      case 'fault':
        this.faults.push({ ...event, until: event.until ?? event.at })
        break
      case 'healed': {
        const fault = this.faults.findLast(({ what, target }) => what === event.what && target === event.target)
        if (fault) fault.until = event.at
        break
      }
      case 'released':
        if (event.outcome === 'released') this.#of(event).freed = event.at
        break
      case 'opened':
        this.starts.push(event)
        break
      case 'stalled':
        this.stalls.push(event)
        break
      case 'run':
      case 'started':
      case 'ended':
        break
    }
  }

  #of({ op, kind }: { op: number; kind: string }): Acquisition {
    const acquisition = this.acquisitions.get(op)
    if (!acquisition)
      throw new LeaseError(
        'INVALID_ARGUMENT',
        `the history has ${kind} for acquisition ${op}, which was never requested`,
      )
    return acquisition
  }

  #openOf(client: number): Set<Acquisition> {
    const open = this.#open.get(client) ?? new Set()
    this.#open.set(client, open)
    return open
  }
}

/** Was the fault present at any time between these moments? */
export function isDuring({ at, until }: Fault, from: number, to: number): boolean {
  return at <= to && until >= from
}

/** May a server have answered between these moments that does not know the leases of another? */
export function isSplit({ faults, excuses }: Trace, from: number, to: number): boolean {
  return excuses && faults.some(fault => fault.splits === true && isDuring(fault, from, to))
}

/** The wall clock of this client jumps. After a jump forward, it ends its own leases early. */
export function isJump({ what, client }: Fault, of: number): boolean {
  return what === 'client-clock' && client === of
}

/** The client that a fault strikes; `undefined` for servers or all. */
export function struck({ client, pausesClient }: Pick<Fault, 'client' | 'pausesClient'>): number | undefined {
  return client ?? pausesClient
}
