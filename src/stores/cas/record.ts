import { LeaseError } from '../../contract/errors.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { isFresh } from '../rules/difference.ts'
import { positionLifetime } from '../rules/name.ts'
import { type Holder, type NameState, type Party, UNUSED, type Waiter } from '../rules/state.ts'

/** The number of the format below. */
const FORMAT = 1

/** The shortest time in milliseconds for which a free name keeps its record: until then wall clocks differ, and tokens need it. */
const KEPT = 7 * 24 * 3_600_000

/** The number of earlier writes that a record names, so that a process finds out whether a write of its own happened. */
const MOST_WRITES = 8

/**
 * When an entry was renewed, without a clock that two machines would have to share: the write that did it, and at least how
 * many milliseconds before the current write that was.
 */
type Renewed = readonly [write: string, elapsed: number]

/** What is stored of a name, as JSON. */
export interface Stored {
  readonly format: number
  /** The last writes, the current one at the end. Each has an id that is never used again. */
  readonly writes: readonly string[]
  readonly token: number
  readonly changed?: Renewed
  readonly holders: readonly (Omit<Holder, 'expires'> & { readonly renewed: Renewed })[]
  readonly waiters: readonly (Omit<Waiter, 'lapses'> & { readonly renewed: Renewed })[]
  readonly gone: readonly { readonly id: string; readonly renewed: Renewed }[]
}

/** A record as this process sees it. All times are of its own monotonic clock. */
export interface View {
  readonly writes: readonly string[]
  readonly state: NameState
  /** By an entry and the write that renewed it: a time at which it was already renewed. */
  readonly since: ReadonlyMap<string, number>
  /** By entry: the write that renewed it. */
  readonly renewed: ReadonlyMap<unknown, string>
}

/** A name without a record. */
export const NOTHING: View = { writes: [], state: UNUSED, since: new Map(), renewed: new Map() }

/** Reads a value. Throws `FORMAT_MISMATCH` for the value of another version or program. */
export function parse(name: string, value: string): Stored {
  let format: unknown
  try {
    const stored = JSON.parse(value)
    format = stored?.format
    if (format === FORMAT) return stored
  } catch {
    // not ours
  }
  const what = `the record of ${JSON.stringify(name)} has`
  const message =
    typeof format === 'number'
      ? `${what} format ${format}, and this version of Holdfast supports format ${FORMAT}: use one version everywhere`
      : `${what} no format of Holdfast: give leases a table, bucket or prefix of their own`
  throw new LeaseError('FORMAT_MISMATCH', message)
}

/**
 * What a record says by the clock of this process. Nobody knows when an entry was renewed, but the record, its age, and
 * what this process saw before each give a time at which it already was. The earliest counts. So a lease is never taken
 * to end too soon, if clocks run equally fast. One that ended is held again if it is renewed before another has the name:
 * the version of the record decides which of the two writes happens.
 */
export function observe(stored: Stored, written: number, before: View): View {
  const since = new Map<string, number>()
  const renewed = new Map<unknown, string>()
  const sinceOf = (id: string, [write, elapsed]: Renewed): number => {
    const key = `${id} ${write}`
    const time = Math.min(written - elapsed, before.since.get(key) ?? Number.POSITIVE_INFINITY)
    since.set(key, time)
    return time
  }
  const holders = stored.holders.map(({ renewed: by, ...fields }) => {
    const holder: Holder = { ...fields, expires: sinceOf(fields.id, by) + fields.ttl }
    renewed.set(holder, by[0])
    return holder
  })
  const waiters = stored.waiters.map(({ renewed: by, ...fields }) => {
    const waiter: Waiter = { ...fields, lapses: sinceOf(fields.id, by) + positionLifetime(fields.ttl) }
    renewed.set(waiter, by[0])
    return waiter
  })
  const gone = stored.gone.map(({ id, renewed: by }): [string, number] => {
    renewed.set(id, by[0])
    return [id, sinceOf(id, by) + LONGEST_REQUEST]
  })
  const changed = stored.changed ? sinceOf('', stored.changed) : UNUSED.changed
  if (stored.changed) renewed.set('', stored.changed[0])
  const state = { holders, waiters, gone: new Map(gone), token: stored.token, changed }
  return { writes: stored.writes, state, since, renewed }
}

/** What must be stored after decisions at `now`, which renewed what these ids hold or wait for. `write` is the id of this write. */
export function store(
  { writes, state: before, renewed }: View,
  state: NameState,
  now: number,
  renewing: ReadonlySet<string | undefined>,
  write: string,
): Stored {
  const mark = (entry: unknown, isSame: boolean, time: number): Renewed => {
    return [(isSame && renewed.get(entry)) || write, Math.max(Math.floor(now - time), 0)]
  }
  const { token, changed } = state
  const holderBefore = unrenewed(before.holders, renewing, ({ expires }) => expires)
  const waiterBefore = unrenewed(before.waiters, renewing, ({ lapses }) => lapses)
  return {
    format: FORMAT,
    writes: [...writes, write].slice(-MOST_WRITES),
    token,
    ...(changed > UNUSED.changed && { changed: mark('', changed === before.changed, changed) }),
    holders: state.holders.map(holder => {
      const { expires, ...fields } = holder
      return { ...fields, renewed: mark(holderBefore(holder), true, expires - fields.ttl) }
    }),
    waiters: state.waiters.map(waiter => {
      const { lapses, ...fields } = waiter
      return { ...fields, renewed: mark(waiterBefore(waiter), true, lapses - positionLifetime(fields.ttl)) }
    }),
    gone: Array.from(state.gone, ([id, until]) => {
      return { id, renewed: mark(id, before.gone.get(id) === until, until - LONGEST_REQUEST) }
    }),
  }
}

/** An entry as it was before, if it was not renewed: a note, or a grant that passes a waiter, changes no time. */
function unrenewed<Entry extends Party>(
  before: readonly Entry[],
  renewing: ReadonlySet<string | undefined>,
  endOf: (entry: Entry) => number,
): (entry: Entry) => Entry {
  const known = new Map(before.map(entry => [entry.id, entry]))
  return entry => {
    const old = renewing.has(entry.id) ? undefined : known.get(entry.id)
    return old && endOf(old) === endOf(entry) ? old : entry
  }
}

/** Milliseconds for which the record is needed if nobody writes it again. */
export function keepOf({ holders }: NameState, now: number): number {
  return Math.ceil(holders.reduce((most, { expires }) => Math.max(most, expires - now), 0)) + KEPT
}

/** Must the state be written? A position that was written lately need not be. */
export function isChanged(before: NameState, after: NameState, now: number): boolean {
  if (after.token !== before.token || after.changed !== before.changed) return true
  if (after.holders.length !== before.holders.length || after.waiters.length !== before.waiters.length) return true
  if (after.holders.some((holder, index) => holder !== before.holders[index])) return true
  for (const [id, until] of after.gone) if (before.gone.get(id) !== until) return true
  return after.waiters.some((waiter, index) => {
    const old = before.waiters[index]
    return waiter !== old && (old?.id !== waiter.id || !isFresh(old, waiter, now))
  })
}

/** Did a write happen that was to follow the write `after`? `open`: not yet. `unclear`: too much was written since. */
export function fateOf(write: string, after: string | undefined, writes: readonly string[]): Fate {
  if (writes.includes(write)) return 'done'
  if (writes.at(-1) === after) return 'open'
  const isKnown = after === undefined ? writes.length < MOST_WRITES : writes.includes(after)
  return isKnown ? 'never' : 'unclear'
}

export type Fate = 'done' | 'open' | 'never' | 'unclear'
