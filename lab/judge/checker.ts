import { type Counts, countsOf, LEAST, type Least, missing } from './coverage.ts'
import { explanation } from './explanation.ts'
import { ms, number } from './format.ts'
import type { History } from './history.ts'
import { type Idle, idlesOf } from './idle.ts'
import { type Overlap, overlapsOf } from './overlap.ts'
import { answers } from './promises/answers.ts'
import { liveness, recoveriesOf } from './promises/liveness.ts'
import { type Margin, marginsOf, notification } from './promises/notification.ts'
import { safety } from './promises/safety.ts'
import { waitsOf } from './promises/sharing.ts'
import { tokens } from './promises/tokens.ts'
import { type Waiting, waitingOf } from './promises/waiting.ts'
import { type Trace, trace } from './trace.ts'
import type { Outcome, Row, Verdict } from './verdict.ts'
import type { PromiseName } from './violation.ts'

const TITLES: Readonly<Record<PromiseName, string>> = {
  safety: 'Safety: mutual exclusion as the resource sees it',
  tokens: 'Tokens: unique and increasing',
  answers: 'Answers: allowed by the rules of a name',
  notified: 'Notified in time: before the next grant',
  waiting: 'Waiting: woken by a release, and in order',
  deadlock: 'No deadlock: a free name is acquired',
  faults: 'Recovery: after faults of servers or network',
}

/** Violations to keep of each promise, and to explain. */
const MOST_VIOLATIONS = 20
const MOST_EXPLAINED = 5

/**
 * Judges the history of a run. A promise without a violation passes only if the run shows enough of what could have broken
 * it; otherwise it is inconclusive. `excuses: false` excuses no fault but a pause. Throws `INVALID_ARGUMENT` for an invalid
 * history.
 */
export function judge(history: History, least: Least = LEAST, { excuses = true }: { excuses?: boolean } = {}): Verdict {
  const traced = trace(history, excuses)
  const waiting = waitingOf(traced)
  const counts = countsOf(traced, waiting)
  const overlaps = overlapsOf(traced)
  const margins = marginsOf(traced)
  const idles = idlesOf(traced)
  const recoveries = recoveriesOf(traced)
  const found = [
    ...safety(traced),
    ...tokens(traced),
    ...answers(traced),
    ...notification(traced, overlaps),
    ...waiting.violations,
    ...liveness(traced, idles),
  ]
  const violations = Map.groupBy(
    found.sort((one, other) => one.at - other.at),
    ({ promise }) => promise,
  )
  const seen: Readonly<Record<PromiseName, readonly string[]>> = {
    safety: [`writes accepted: ${number(counts.accepted)}, refused: ${number(counts.rejected)}`],
    tokens: [
      `grants: ${number(counts.grants)}; takeovers, whose last holder had not released the name: ${number(counts.takeovers)}`,
    ],
    answers: [`answers of the store: ${number(counts.answers)}`],
    notified: [
      `losses reported to their holders: ${number(counts.losses)}`,
      ...notifiedOf(
        margins.map(each => each.ms),
        overlaps,
      ),
      ...overlapped(overlaps),
    ],
    waiting: [followed(waiting), ...overtaken(traced, waiting)],
    deadlock: [
      ...(traced.run.shared ? [] : recovered(recoveries)),
      `longest time without a holder while clients waited: ${ms(longest(idles))}`,
      ...served(traced),
    ],
    faults: [faultsOf(counts)],
  }
  const rows = (Object.keys(TITLES) as PromiseName[]).map((promise): Row => {
    const all = violations.get(promise) ?? []
    const lacks = missing(promise, counts, least, traced)
    const outcome = all.length > 0 ? 'violated' : lacks.length > 0 ? 'inconclusive' : 'passed'
    const first = { violations: all.slice(0, MOST_VIOLATIONS), broken: all.length }
    return { promise, title: TITLES[promise], outcome, seen: seen[promise], missing: lacks, ...first }
  })
  const { kind: _, at: begun, ...run } = traced.run
  return {
    outcome: worst(rows),
    run,
    duration: traced.end - begun,
    rows,
    counts,
    overlaps: sum(overlaps),
    margins: summary(margins),
    recoveries: recoveries.length > 0 ? { count: recoveries.length, longest: recoveries.at(-1) ?? 0 } : undefined,
    ...shortest(traced, rows),
  }
}

function summary(margins: readonly Margin[]): Verdict['margins'] {
  const [first] = margins
  if (!first) return undefined
  const late = margins.filter(({ ms }) => ms < 0).map(({ cause }) => cause ?? 'a violation')
  return {
    count: margins.length,
    least: first.ms,
    median: middle(margins.map(each => each.ms)),
    undisturbed: margins.find(({ cause }) => !cause)?.ms,
    late: [...new Set(late)].sort(),
  }
}

function worst(rows: readonly Row[]): Outcome {
  const outcomes: readonly Outcome[] = ['violated', 'inconclusive', 'passed']
  return outcomes.find(outcome => rows.some(row => row.outcome === outcome)) ?? 'passed'
}

function shortest(traced: Trace, rows: readonly Row[]): Pick<Verdict, 'example' | 'explanation'> {
  const firsts = rows.flatMap(({ violations }) => violations.slice(0, MOST_EXPLAINED))
  const explained = firsts.map(example => ({ example, explanation: explanation(traced, example) }))
  const [first] = explained.sort((one, other) => one.explanation.length - other.explanation.length)
  return first ?? { example: undefined, explanation: [] }
}

function sum(overlaps: readonly Overlap[]): Verdict['overlaps'] {
  const count = (effect: Overlap['effect']): number => overlaps.filter(each => each.effect === effect).length
  return {
    total: overlaps.length,
    excused: overlaps.filter(({ excuse }) => excuse).length,
    refused: count('refused'),
    idle: count('idle'),
    harmful: count('harmful'),
  }
}

/** For takeovers from a live holder: when it was notified. A late notification is excused or a violation. */
function notifiedOf(margins: readonly number[], overlaps: readonly Overlap[]): string[] {
  const late = margins.filter(margin => margin < 0)
  const inTime = margins.slice(late.length)
  const lines: string[] = []
  if (inTime.length > 0) {
    const soonest = `${ms(inTime[0] ?? 0)} or more before the next grant, ${ms(middle(inTime))} in the median`
    lines.push(`takeovers from a live holder that was notified in time: ${number(inTime.length)}, ${soonest}`)
  }
  if (late.length > 0) {
    const latest = `up to ${ms(-(late[0] ?? 0))} after the next grant`
    const why = excusesOf(overlaps.filter(({ isByCheck }) => isByCheck))
    lines.push(`takeovers from a live holder that was notified late: ${number(late.length)}, ${latest}, ${why}`)
  }
  return lines
}

function excusesOf(overlaps: readonly Overlap[]): string {
  const excuses = new Set(overlaps.flatMap(({ excuse }) => excuse ?? []))
  const open = overlaps.filter(({ excuse }) => !excuse).length
  const excused = excuses.size > 0 ? [`excused by ${[...excuses].join(' and ')}`] : []
  return [...(open > 0 ? [`${number(open)} not excused`] : []), ...excused].join(', ')
}

function overlapped(overlaps: readonly Overlap[]): string[] {
  const { total, refused, idle, harmful } = sum(overlaps)
  if (total === 0) return ['no client acted as holder after the next grant']
  const parts = [
    [refused, 'the fence refused a write of the older'],
    [idle, 'no write of the older came after one of the newer'],
    [harmful, 'a write of the older was accepted'],
  ] as const
  const effects = parts.filter(([times]) => times > 0).map(([times, what]) => `${what} (${number(times)})`)
  return [
    `${total === 1 ? 'one overlap' : `${number(total)} overlaps`} of two holders, ${excusesOf(overlaps)}: ${effects.join(', ')}`,
  ]
}

function followed({ delays }: Waiting): string {
  if (delays.length === 0) return 'no release with waiters in calm times'
  const times = `${ms(middle(delays))} in the median, ${ms(delays.at(-1) ?? 0)} at most`
  return `releases with waiters in calm times: ${number(delays.length)}; the next granted request left after ${times}`
}

function overtaken({ store }: Trace, waiting: Waiting): string[] {
  if (store?.order !== 'first come, first served') return []
  return [`requests granted before an earlier one that waited in calm times: ${number(waiting.overtaken)} at most`]
}

function recovered(recoveries: readonly number[]): string[] {
  const last = recoveries.at(-1)
  if (last === undefined) return ['no holder died while clients waited']
  return [`names of dead holders were acquired within ${ms(last)} (${number(recoveries.length)})`]
}

function served(traced: Trace): string[] {
  const longest = waitsOf(traced).findLast(({ acquisition }) => acquisition.granted <= acquisition.settled)
  if (!longest || !Number.isFinite(longest.acquisition.granted)) return []
  return [`longest wait for a shared name, without faults of the waiter: ${ms(longest.waited)}`]
}

function faultsOf({ faults }: Counts): string {
  return Object.entries(faults)
    .map(([what, times]) => `${what} ${number(times)}`)
    .join(', ')
}

function longest(idles: readonly Idle[]): number {
  return idles.reduce((most, { from, to }) => Math.max(most, to - from), 0)
}

function middle(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
