import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { newFolder } from '../../lab/servers/folder.ts'
import { type NameState, UNUSED } from '../../src/stores/rules/state.ts'
import type { NameClass } from '../model/name/model.ts'

/** One step of a trace: a request at a time, its answer, and the state after it. */
export interface Step {
  readonly now: number
  readonly asked: { readonly verb: string; readonly id: string; readonly queues: boolean }
  readonly answer: { readonly held: boolean; readonly token: number; readonly ahead: number }
  readonly state: {
    readonly holders: readonly { id: string; token: number; slots: readonly number[]; expires: number }[]
    readonly waiters: readonly { id: string; lapses: number; isPassed: boolean }[]
    readonly gone: readonly (readonly [string, number])[]
    readonly token: number
  }
}

/** Runs a specification, and returns what the simulator prints. Throws if an invariant is violated. */
export function simulate(
  path: string,
  samples: number,
  seed: string,
  { steps = 40, more = [] }: { readonly steps?: number; readonly more?: readonly string[] } = {},
): string {
  const quint = join(import.meta.dirname, 'node_modules/.bin/quint')
  const options = ['--backend', 'typescript', '--invariant', 'safe', '--max-steps', String(steps), '--seed', seed]
  return execFileSync(quint, ['run', path, ...options, '--max-samples', String(samples), ...more], { encoding: 'utf8' })
}

/** A copy of a specification with a mistake: `to` replaces `from`, which stands there once. */
export function withMistake(path: string, from: string, to: string): string {
  const text = readFileSync(path, 'utf8')
  if (text.split(from).length !== 2) throw new Error(`the specification should contain this once: ${from}`)
  const copy = join(newFolder('specification'), basename(path))
  writeFileSync(copy, text.replace(from, to))
  return copy
}

/** Random traces of the specification, without their first state. */
export function tracesOf<State = Step>(path: string, count: number, seed: string, steps?: number): State[][] {
  const folder = newFolder('traces')
  const more = ['--n-traces', String(count), '--out-itf', join(folder, '{seq}.itf.json')]
  simulate(path, count, seed, { ...(steps && { steps }), more })
  return globSync(join(folder, '*.itf.json')).map(file => {
    const { states } = JSON.parse(readFileSync(file, 'utf8'), plain) as { states: State[] }
    return states.slice(1)
  })
}

/** Numbers, sets and maps of the Informal Trace Format. */
function plain(_: string, value: unknown): unknown {
  const tagged = value as { '#bigint'?: string; '#set'?: unknown; '#map'?: unknown } | null
  if (typeof tagged?.['#bigint'] === 'string') return Number(tagged['#bigint'])
  return tagged?.['#set'] ?? tagged?.['#map'] ?? value
}

/** The terms of the claims, as the specification has them. */
const TERMS: Readonly<Record<string, { limit: number; units: number; ttl: number }>> = {
  writer: { limit: 1, units: 1, ttl: 3_000 },
  lock: { limit: 1, units: 1, ttl: 500 },
  reader: { limit: 100, units: 1, ttl: 3_000 },
  one: { limit: 3, units: 1, ttl: 3_000 },
  two: { limit: 3, units: 2, ttl: 3_000 },
}

/** The first step at which the class decides otherwise. */
export function disagreement(Rules: NameClass, trace: readonly Step[]): string | undefined {
  let before: NameState = UNUSED
  for (const [index, { now, asked, answer, state }] of trace.entries()) {
    const rules = new Rules(now, before)
    const said = { step: index, asked, answer, ...state, gone: new Map(state.gone) }
    const decided = { step: index, asked, answer: decide(rules, asked), ...shown(rules.state) }
    const [one, other] = [said, decided].map(each => JSON.stringify(sorted(each)))
    if (one !== other) return `the specification: ${one}\nthe class:         ${other}`
    before = rules.state
  }
  return undefined
}

function decide(rules: InstanceType<NameClass>, { verb, id, queues }: Step['asked']): Step['answer'] {
  const terms = TERMS[id] as (typeof TERMS)[string]
  const none = { held: false, token: 0, ahead: 0 }
  if (verb === 'acquire') {
    const given = rules.acquire({ id, owner: '', note: '', grace: 100, queue: queues, ...terms })
    return given.held ? { held: true, token: given.token, ahead: 0 } : { ...none, ahead: given.ahead }
  }
  if (verb === 'release') return { ...none, held: rules.release(id) === 'released' }
  const given = verb === 'renew' ? rules.renew(id, terms.ttl) : rules.break()
  return given ? { ...none, held: true, token: given.token } : none
}

function shown({ holders, waiters, gone, token, changed }: NameState): Record<string, unknown> {
  return {
    holders: holders.map(({ id, token, slots, expires }) => ({ id, token, slots, expires })),
    waiters: waiters.map(({ id, lapses, isPassed }) => ({ id, lapses, isPassed })),
    gone: new Map(gone),
    token,
    changed: Math.max(changed, 0), // the specification begins at 0
  }
}

/** Keys in one order, and sets and maps as lists in one order. */
function sorted(value: unknown): unknown {
  if (value instanceof Map) return [...value].toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (Array.isArray(value))
    return value.every(each => typeof each === 'number') ? value.toSorted((a, b) => a - b) : value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  )
}
