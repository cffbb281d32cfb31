import { judge } from '../checker.ts'
import type { Details, Event, Kind } from '../history.ts'
import type { Verdict } from '../verdict.ts'
import type { PromiseName } from '../violation.ts'

interface Of {
  readonly client: number
  readonly name: string
  readonly op: number
}

/** Acquisitions of three clients. */
export const ONE: Of = { client: 1, name: 'a', op: 1 }
export const TWO: Of = { client: 2, name: 'a', op: 2 }
export const THREE: Of = { client: 3, name: 'a', op: 3 }

const RUN: Details['run'] = {
  engine: 'made up',
  seed: 1,
  ttl: 100,
  clients: 3,
  names: ['a'],
  fence: true,
  faults: [],
  versions: {},
  bound: { death: 100, election: 300 },
}

export function event<K extends Kind>(kind: K, at: number, details: Details[K]): Event {
  return { kind, at, ...details } as Event
}

/** `sent`: when the granted request left. */
export function granted(at: number, of: Of, token: string, sent: number = at): Event {
  return event('granted', at, { ...of, token, asked: sent })
}

/** The verdict on these events, whatever their order. */
export function verdict(...events: readonly Event[]): Verdict {
  return verdictOf({}, ...events)
}

function verdictOf(run: Partial<Details['run']>, ...events: readonly Event[]): Verdict {
  return judge([event('run', 0, { ...RUN, ...run }), ...events.toSorted((one, other) => one.at - other.at)])
}

/** How they break the promise. */
export function broken(promise: PromiseName, ...events: readonly Event[]): string[] {
  return brokenOf({}, promise, ...events)
}

/** How they do in such a run. */
export function brokenOf(run: Partial<Details['run']>, promise: PromiseName, ...events: readonly Event[]): string[] {
  const row = verdictOf(run, ...events).rows.find(each => each.promise === promise)
  return row?.violations.map(({ what }) => what) ?? []
}
