import { NEVER } from './acquisition.ts'
import { type Span, union, without } from './span.ts'
import { type Fault, struck, type Trace } from './trace.ts'

/**
 * The times in which nothing disturbs a client: no fault of its own, of servers or of all, and no process of the lab that
 * the machine kept from running. After a fault, clients have the time that liveness allows. A steady fault does not disturb
 * its client, but others wait for its round trips.
 */
export class Calm {
  readonly #all: readonly Span[]
  readonly #byClient = new Map<number, readonly Span[]>()

  constructor({ run, faults, stalls, starts }: Trace) {
    const settled = ({ client, until }: { client: number | undefined; until: number }): number =>
      until + run.ttl + (client === undefined ? run.bound.election : run.bound.death)
    const away = faults
      .filter(({ steady }) => !steady)
      .map(fault => ({
        client: struck(fault),
        from: fault.at,
        to: settled({ client: struck(fault), until: fault.until }),
      }))
    // A process that was paused on purpose was not stalled.
    const busy = stalls.filter(({ client, at, ms }) => !faults.some(fault => isPause(fault, client, at - ms, at)))
    const disturbed = [
      ...away,
      ...busy.map(({ at, ms }) => ({ client: undefined, from: at - ms, to: at })),
      ...starts.map(({ client, at }) => ({ client, from: 0, to: settled({ client, until: at }) })),
    ]
    const slow = faults.filter(({ steady }) => steady).map(({ at, until }) => ({ from: at, to: until }))
    this.#all = union([...disturbed, ...slow])
    for (let client = 1; client <= run.clients; client += 1)
      this.#byClient.set(client, union(disturbed.filter(each => (each.client ?? client) === client)))
  }

  /** The parts of this span in which the client was not disturbed. */
  of(client: number, span: Span): Span[] {
    return without([span], this.#byClient.get(client) ?? [])
  }

  /** Was nobody disturbed in this span, and nobody slow? */
  covers({ from, to }: Span): boolean {
    const next = this.#all[lowerBound(this.#all, each => each.to >= from)]
    return (next?.from ?? NEVER) > to
  }
}

function isPause({ pausesClient, at, until }: Fault, client: number | undefined, from: number, to: number): boolean {
  return pausesClient !== undefined && pausesClient === client && at <= to && until >= from
}

/** The index of the first item for which `isPast` is true, if it is true for all after it. */
export function lowerBound<Item>(items: readonly Item[], isPast: (item: Item) => boolean): number {
  let [from, to] = [0, items.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (isPast(items[middle] as Item)) to = middle
    else from = middle + 1
  }
  return from
}
