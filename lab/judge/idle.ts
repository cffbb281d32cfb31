import { type Acquisition, NEVER } from './acquisition.ts'
import { type Span, union, without } from './span.ts'
import { type Fault, struck, type Trace } from './trace.ts'

/** A time in which no client held a name, although clients waited for it and servers could grant it. */
export interface Idle extends Span {
  readonly name: string
  /** The last fault of servers or the network that may be the cause. */
  readonly fault: Fault | undefined
  /** How long it may last, in milliseconds. */
  readonly limit: number
}

/** With any number of faults, a name is acquired within this multiple of the limit for one fault. */
const PATIENCE = 5

/** The idle times of all names: each undisturbed part and the whole. */
export function idlesOf(trace: Trace): Idle[] {
  const byClient = Map.groupBy(
    trace.faults.filter(({ steady }) => !steady),
    struck,
  )
  return trace.run.names.flatMap(name => new Name(name, trace, byClient).idles())
}

class Name {
  readonly #name: string
  readonly #trace: Trace
  readonly #faults: ReadonlyMap<number | undefined, readonly Fault[]>
  readonly #asked: readonly Acquisition[]
  /** How long a name may be idle, in milliseconds. */
  readonly #limits: { readonly death: number; readonly election: number }

  constructor(name: string, trace: Trace, faults: ReadonlyMap<number | undefined, readonly Fault[]>) {
    const { ttl, bound } = trace.run
    this.#name = name
    this.#trace = trace
    this.#faults = faults
    this.#asked = [...trace.acquisitions.values()].filter(each => each.name === name)
    this.#limits = { death: ttl + bound.death, election: ttl + bound.election }
  }

  idles(): Idle[] {
    const { faults, run, grants } = this.#trace
    const believed = (grants.get(this.#name) ?? []).map(each => ({ from: each.granted, to: each.believedUntil }))
    const outages = faults.filter(fault => fault.stopsMajority).map(spanOf)
    // A client that was just refused still waits for the name.
    const wanted = union(this.#wanted(), run.ttl)
    return without(wanted, [...believed, ...outages]).flatMap(span => this.#judge(span))
  }

  /** While a client waits that runs and reaches the servers. */
  #wanted(): Span[] {
    return this.#asked.flatMap(({ asked, settled, client }) => {
      const to = Math.min(settled, this.#trace.end)
      const away = this.#faultsOf(client).filter(({ at, until }) => until > asked && at < to)
      return without([{ from: asked, to }], away.map(spanOf))
    })
  }

  #judge(span: Span): Idle[] {
    const { death, election } = this.#limits
    const name = this.#name
    const fault = this.#faultsOf(undefined).findLast(({ at, until }) => at < span.to && until > span.from - election)
    const limit = fault ? election : death
    const stretches = this.#cut(span, limit).map(stretch => ({ ...stretch, name, fault, limit }))
    return [...stretches, { ...span, name, fault, limit: PATIENCE * limit }]
  }

  /** Splits at each disturbance, since each may cost as much as the first. */
  #cut({ from, to }: Span, limit: number): Span[] {
    if (to - from <= limit) return [{ from, to }]
    const moments = [...this.#disturbances()].filter(at => at > from && at < to).sort((one, other) => one - other)
    return [from, ...moments].map((at, index) => ({ from: at, to: moments[index] ?? to }))
  }

  *#disturbances(): Iterable<number> {
    for (const { at, until } of this.#faultsOf(undefined)) yield* [at, until]
    for (const { client, asked, failed, over, died } of this.#asked) {
      if (died !== NEVER) yield died
      for (const { at, until } of this.#faultsOf(client))
        if (asked <= until && Math.min(failed, over) >= at) yield* [at, until]
    }
  }

  #faultsOf(client: number | undefined): readonly Fault[] {
    return this.#faults.get(client) ?? []
  }
}

function spanOf({ at, until }: Fault): Span {
  return { from: at, to: until }
}
