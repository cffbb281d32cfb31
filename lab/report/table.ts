import { number, seconds } from '../judge/format.ts'
import type { Outcome, Row, Verdict } from '../judge/verdict.ts'

type Format = 'bold' | 'dim' | 'red' | 'yellow' | 'green'

const COLOURS: Readonly<Record<Outcome, Format>> = { passed: 'green', violated: 'red', inconclusive: 'yellow' }

/** The width of the column of outcomes. */
const WIDTH = 14

/** Violations to show of each promise. */
const MOST_SHOWN = 3

/** The verdict as text: each promise with what the run showed, and the explanation of a violation. */
export function table(verdict: Verdict, paint: (format: Format, text: string) => string = (_, text) => text): string {
  const { rows, outcome, run, explanation } = verdict
  const lines = rows.flatMap(row => [
    `${paint(COLOURS[row.outcome], row.outcome.padEnd(WIDTH))}${paint('bold', row.title)}`,
    ...remarks(row).map(remark => ' '.repeat(WIDTH) + remark),
  ])
  const tail = explanation.length > 0 ? ['', paint('bold', 'Explanation'), ...explanation.map(line => `  ${line}`)] : []
  return [
    paint(COLOURS[outcome], `${run.engine}: ${outcome}`),
    paint('dim', settings(verdict)),
    '',
    ...lines,
    ...tail,
  ].join('\n')
}

/** What to say about a promise, violations first. */
export function remarks({ violations, broken, missing, seen }: Row): string[] {
  const shown = violations.slice(0, MOST_SHOWN).map(({ name, at, what }) => `${seconds(at)} ${name}: ${what}`)
  const more = broken > shown.length ? [`and ${number(broken - shown.length)} more`] : []
  return [...shown, ...more, ...missing, ...seen]
}

/** The settings of the run. */
export function settings({ run, duration }: Verdict): string {
  const { seed, clients, names, shared, ttl, fence } = run
  const time = `${number(Math.round(duration / 1_000))} s`
  return `seed ${seed}, ${clients} clients, ${names.length} ${shared ? 'shared ' : ''}names, ttl ${ttl} ms, ${time}${fence ? '' : ', without a fence'}`
}
