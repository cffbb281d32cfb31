import { TURN, takeoverTime } from '../../contract/time.ts'
import { leastTtl, tolerance } from '../../core/advice/least-ttl.ts'
import type { Store } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { paint } from '../output.ts'
import { INTERVAL, type Measurement } from './ttl-measurement.ts'

/** With fewer answers there is nothing to say. */
const LEAST_ANSWERS = 20

/** Milliseconds; what people choose from. */
const USUAL_TTLS: readonly number[] = [100, 200, 300, 500, ...[1, 2, 3, 5, 10, 15, 20, 30, 60].map(s => s * 1_000)]
const DEFAULT_TTL = 10_000
/** ZooKeeper as it comes grants up to 24 s, Redlock 30 s. */
const LONG_TTL = 20_000

/** Characters of the longest bar. */
const BAR = 40

const UNKNOWN: readonly string[] = [
  'The event loop and the garbage collector are those of this process: locks.advice() tells of your application.',
  'A measurement shows few of the pauses that a month has, and nothing of a failover unless there was one.',
]

/** What a ttl gives. Milliseconds. */
interface Choice {
  readonly ttl: number
  readonly heartbeat: number
  /** Unresponsiveness and event loop delay, in sum, that a lease tolerates in addition to a lost heartbeat. */
  readonly tolerates: number
  /** After its last renewal, when a holder died; while the servers stay. */
  readonly takeover: number
}

/** The result of `holdfast ttl`, as `--json` prints it. Milliseconds. */
export interface Report {
  readonly store: string
  readonly duration: number
  readonly requestRate: number
  readonly heartbeats: number
  readonly failed: number
  readonly latency: { readonly p50: number; readonly p99: number; readonly p999: number; readonly worst: number } | null
  readonly unresponsiveness: number
  readonly loopDelay: Measurement['loopDelay']
  readonly gc: Measurement['gc']
  readonly histogram: readonly { readonly from: number; readonly to: number; readonly count: number }[]
  readonly advice: Advised | null
  readonly unknown: readonly string[]
}

interface Advised {
  readonly leastTtl: number
  readonly reason: string
  readonly ttl: number
  readonly heartbeat: number
  readonly choices: readonly Choice[]
}

/** What follows from a measurement of `store`. */
export function report(measurement: Measurement, store: Store): Report {
  const { duration, latencies, failed, unresponsiveness, loopDelay, gc } = measurement
  const latency = percentilesOf(latencies)
  return {
    store: store.kind,
    duration: Math.round(duration),
    requestRate: 1_000 / INTERVAL,
    heartbeats: latencies.length,
    failed,
    latency: latency && rounded(latency),
    unresponsiveness: rounded({ unresponsiveness }).unresponsiveness,
    loopDelay: rounded(loopDelay),
    gc: rounded(gc),
    histogram: histogramOf(latencies),
    advice: latency && latencies.length >= LEAST_ANSWERS ? advise(latency, measurement, store) : null,
    unknown: UNKNOWN,
  }
}

function advise({ p99, worst }: { p99: number; worst: number }, measurement: Measurement, store: Store): Advised {
  const { unresponsiveness, loopDelay } = measurement
  const { shortestTtl } = store.guarantees
  const { ttl: least, reason } = leastTtl({ p99, unresponsiveness, loopDelay: loopDelay.worst, shortestTtl })
  // Twice as much, since so short a time does not show the worst; the default is seldom too much.
  const ttl = Math.max(DEFAULT_TTL, usual(2 * least))
  const ttls = new Set([usual(least), usual(2 * least), ttl, Math.max(LONG_TTL, ttl)])
  const choices = [...ttls].map(ttl => ({
    ttl,
    heartbeat: Math.round(ttl / 3),
    tolerates: Math.floor(tolerance(ttl)),
    // Its last renewal, and then the request of whoever waits, may take as long as the worst did.
    takeover: Math.ceil(takeoverTime(ttl, store.guarantees.takeover) + TURN + 2 * worst),
  }))
  return { leastTtl: least, reason, ttl, heartbeat: Math.round(ttl / 3), choices }
}

/** To microseconds. */
function rounded<Times extends Readonly<Record<string, number>>>(times: Times): Times {
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, Math.round(ms * 1_000) / 1_000])) as Times
}

/** The next ttl that one would choose. */
function usual(ttl: number): number {
  return USUAL_TTLS.find(choice => choice >= ttl) ?? Math.ceil(ttl / 60_000) * 60_000
}

/**
 * As if a request had left every 100 ms: one that takes longer holds up the next, which would have waited as well. What
 * the median takes is no stall.
 */
function percentilesOf(latencies: readonly number[]): Report['latency'] {
  if (latencies.length === 0) return null
  const sorted = latencies.toSorted((a, b) => a - b)
  const median = at(sorted, 0.5)
  const all = [...sorted]
  for (const latency of sorted) for (let l = latency - INTERVAL; l > median; l -= INTERVAL) all.push(l)
  all.sort((a, b) => a - b)
  return { p50: at(all, 0.5), p99: at(all, 0.99), p999: at(all, 0.999), worst: at(all, 1) }
}

/** What this share of them does not exceed. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] as number
}

/** Each row is twice as long as the one before. */
function histogramOf(latencies: readonly number[]): Report['histogram'] {
  const rows = latencies.map(latency => Math.floor(Math.log2(Math.max(latency, 2 ** -6))))
  if (rows.length === 0) return []
  const first = rows.reduce((a, b) => Math.min(a, b))
  const counts = Array<number>(rows.reduce((a, b) => Math.max(a, b)) - first + 1).fill(0)
  for (const row of rows) counts[row - first] = (counts[row - first] as number) + 1
  return counts.map((count, row) => ({ from: 2 ** (first + row), to: 2 ** (first + row + 1), count }))
}

/** For people. */
export function text(result: Report): string {
  const { store, duration, heartbeats, failed, latency, unresponsiveness, loopDelay, gc, advice, unknown } = result
  const times = failed === 1 ? 'once' : `${failed} times`
  const lines = [
    `${heartbeats} heartbeats over ${store} in ${formatDuration(duration)}, ${failed === 0 ? 'none failed' : `failed ${times}`}`,
    '',
  ]
  if (latency) {
    const { p50, p99, p999, worst } = latency
    lines.push(
      `${paint('bold', 'latency')}          p50 ${ms(p50)}, p99 ${ms(p99)}, p99.9 ${ms(p999)}, worst ${ms(worst)}`,
      ...histogramLines(result.histogram),
    )
  }
  lines.push(
    `${paint('bold', 'unresponsive')}     ${ms(unresponsiveness)}`,
    `${paint('bold', 'event loop')}       p99 ${ms(loopDelay.p99)} late, worst ${ms(loopDelay.worst)}; ` +
      `${gc.pauses} garbage collections, worst ${ms(gc.worst)}`,
    '',
  )
  if (advice) lines.push(...adviceLines(advice))
  else lines.push(`Too few heartbeats to advise a ttl: ${heartbeats} were answered, and ${LEAST_ANSWERS} are needed.`)
  lines.push('', paint('bold', 'Not known from this'), ...unknown.map(sentence => `  ${sentence}`))
  return lines.join('\n')
}

function histogramLines(histogram: Report['histogram']): string[] {
  const most = Math.max(...histogram.map(({ count }) => count))
  return histogram.map(({ to, count }) => {
    const bar = '#'.repeat(Math.ceil((count / most) * BAR))
    return `  ${`< ${ms(to)}`.padStart(10)}  ${bar.padEnd(BAR)}  ${count}`
  })
}

function adviceLines({ reason, ttl, heartbeat, choices, leastTtl }: Advised): string[] {
  const heads = ['   ttl', 'heartbeat', 'tolerates, with one lost', 'takeover takes at most']
  const row = (cells: readonly string[]): string =>
    cells.map((cell, i) => cell.padStart(heads[i]?.length ?? 0)).join('   ')
  return [
    reason,
    `${paint('bold', `Take a ttl of ${formatDuration(ttl)}`)}, a heartbeat every ${formatDuration(heartbeat)}; ` +
      `where a takeover must be faster, never below ${formatDuration(leastTtl)}.`,
    '',
    `  ${row(heads)}`,
    ...choices.map(
      choice => `  ${row([choice.ttl, choice.heartbeat, choice.tolerates, choice.takeover].map(formatDuration))}`,
    ),
  ]
}

/** Milliseconds that may be few. */
function ms(value: number): string {
  return value < 10 ? `${Number(value.toPrecision(2))} ms` : formatDuration(value)
}
