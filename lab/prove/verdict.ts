import type { Counts } from './coverage.ts'
import type { Event } from './history.ts'
import type { PromiseName, Violation } from './violation.ts'

export type Outcome = 'passed' | 'violated' | 'inconclusive'

/** One promise, and what became of it. */
export interface Row {
  readonly promise: PromiseName
  readonly title: string
  readonly outcome: Outcome
  /** What was seen, a sentence each. */
  readonly seen: readonly string[]
  /** What the run lacks, for one that is inconclusive. */
  readonly missing: readonly string[]
  /** The first of them. */
  readonly violations: readonly Violation[]
  /** How many there were. */
  readonly broken: number
}

/** What a history shows. It can be written as JSON; times are milliseconds. */
export interface Verdict {
  readonly outcome: Outcome
  readonly run: Omit<Event<'run'>, 'kind' | 'at'>
  readonly duration: number
  readonly rows: readonly Row[]
  readonly counts: Counts
  /** Two who acted as holders of one name at once, and what the fence did about it. */
  readonly overlaps: { readonly total: number; readonly excused: number } & Readonly<
    Record<'refused' | 'idle' | 'harmful', number>
  >
  /** For takeovers from a live holder: how long before the next grant it knew of its loss. Negative if after. */
  readonly margins: { readonly count: number; readonly least: number; readonly median: number } | undefined
  /** After how many milliseconds names were had again whose holder died. */
  readonly recoveries: { readonly count: number; readonly longest: number } | undefined
  /** The violation that is told the shortest. */
  readonly example: Violation | undefined
  /** How it came about, a line for each step; empty without one. */
  readonly story: readonly string[]
}

type Format = 'bold' | 'dim' | 'red' | 'yellow' | 'green'

const COLOURS: Readonly<Record<Outcome, Format>> = { passed: 'green', violated: 'red', inconclusive: 'yellow' }

/** Of the column of outcomes. */
const WIDTH = 14

/** More would only hide the first. */
const MOST_SHOWN = 3

/** The verdict for people: each promise and what was seen of it; on a violation its story. */
export function table(verdict: Verdict, paint: (format: Format, text: string) => string = (_, text) => text): string {
  const { rows, outcome, run, story } = verdict
  const lines = rows.flatMap(row => [
    `${paint(COLOURS[row.outcome], row.outcome.padEnd(WIDTH))}${paint('bold', row.title)}`,
    ...remarks(row).map(remark => ' '.repeat(WIDTH) + remark),
  ])
  const tail = story.length > 0 ? ['', paint('bold', 'How it came about'), ...story.map(line => `  ${line}`)] : []
  return [
    paint(COLOURS[outcome], `${run.engine}: ${outcome}`),
    paint('dim', settings(verdict)),
    '',
    ...lines,
    ...tail,
  ].join('\n')
}

/** What there is to say of a promise: what broke it first. */
export function remarks({ violations, broken, missing, seen }: Row): string[] {
  const shown = violations.slice(0, MOST_SHOWN).map(({ name, at, what }) => `${seconds(at)} ${name}: ${what}`)
  const more = broken > shown.length ? [`and ${number(broken - shown.length)} more`] : []
  return [...shown, ...more, ...missing, ...seen]
}

/** What was run, in short. */
export function settings({ run, duration }: Verdict): string {
  const { seed, clients, names, ttl, fence } = run
  const time = `${number(Math.round(duration / 1_000))} s`
  return `seed ${seed}, ${clients} clients, ${names.length} names, ttl ${ttl} ms, ${time}${fence ? '' : ', without a fence'}`
}

export function ms(time: number): string {
  return `${number(time)} ms`
}

/** A number as people read it: `58,800`. */
export function number(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** A moment of a run as people read it. */
export function seconds(at: number): string {
  return `${(at / 1_000).toFixed(3)} s`
}
