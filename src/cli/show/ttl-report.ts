import type { Store } from '../../contract/store.ts'
import { DEFAULT_TTL, TURN, takeoverTime } from '../../contract/time.ts'
import { LEAST_P999, leastTtl, tolerance } from '../../core/advice/least-ttl.ts'
import { counted } from '../counted.ts'
import { formatDuration } from '../duration.ts'
import { paint } from '../output.ts'
import { INTERVAL, type Measurement } from './ttl-measurement.ts'

/** The fewest answers for which a ttl is advised. */
const LEAST_ANSWERS = 20

/** The round ttls that may be advised, in milliseconds. */
const USUAL_TTLS: readonly number[] = [100, 200, 300, 500, ...[1, 2, 3, 5, 10, 15, 20, 30, 60].map(s => s * 1_000)]
/** A long ttl that the report always compares, in milliseconds. ZooKeeper grants up to 24 s by default, Redlock 30 s. */
const LONG_TTL = 20_000

/** The length of the longest bar, in characters. */
const BAR = 40

const UNKNOWN: readonly string[] = [
  'The event loop and the garbage collector of your application: locks.advice() measures them.',
  'Rare pauses and failovers that did not happen during the measurement.',
]

/** What a ttl tolerates and costs. Times are in milliseconds. */
interface Choice {
  readonly ttl: number
  readonly heartbeat: number
  /** Unresponsiveness plus event loop delay that a lease tolerates, in addition to one lost heartbeat. */
  readonly tolerates: number
  /** The time from the last renewal of a holder that died to the next grant, without a failover of the servers. */
  readonly takeover: number
}

/** The result of `holdfast ttl`, as `--json` prints it. Times are in milliseconds. */
export interface Report {
  readonly store: string
  readonly duration: number
  readonly requestRate: number
  readonly heartbeats: number
  readonly failed: number
  readonly latency: {
    readonly p50: number
    readonly p99: number
    readonly p999: number | null
    readonly worst: number
  } | null
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

/** Evaluates a measurement of `store`. */
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
  const { minTtl } = store.guarantees
  const { ttl: least, reason } = leastTtl({ p99, unresponsiveness, loopDelay: loopDelay.worst, minTtl })
  // Advise twice the least ttl, because a short measurement misses the worst case. The default ttl is rarely too long.
  const ttl = Math.max(DEFAULT_TTL, usual(2 * least))
  const ttls = new Set([usual(least), usual(2 * least), ttl, Math.max(LONG_TTL, ttl)])
  const choices = [...ttls].map(ttl => ({
    ttl,
    heartbeat: Math.round(ttl / 3),
    tolerates: Math.floor(tolerance(ttl)),
    // Both the last renewal and the next request of the waiter may take as long as the worst latency.
    takeover: Math.ceil(takeoverTime(ttl, store.guarantees.takeover) + TURN + 2 * worst),
  }))
  return { leastTtl: least, reason, ttl, heartbeat: Math.round(ttl / 3), choices }
}

/** Rounds the times to microseconds. */
function rounded<Times extends Readonly<Record<string, number | null>>>(times: Times): Times {
  const round = (ms: number | null): number | null => ms && Math.round(ms * 1_000) / 1_000
  return Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, round(ms)])) as Times
}

/** The next larger round ttl. */
function usual(ttl: number): number {
  return USUAL_TTLS.find(choice => choice >= ttl) ?? Math.ceil(ttl / 60_000) * 60_000
}

/**
 * Percentiles as if a request had been sent every 100 ms (corrected for coordinated omission): a slow request delays the
 * next ones, which would have waited too. Latencies up to the median count once.
 */
function percentilesOf(latencies: readonly number[]): Report['latency'] {
  if (latencies.length === 0) return null
  const sorted = latencies.toSorted((a, b) => a - b)
  const median = at(sorted, 0.5)
  const all = [...sorted]
  for (const latency of sorted) for (let l = latency - INTERVAL; l > median; l -= INTERVAL) all.push(l)
  all.sort((a, b) => a - b)
  return {
    p50: at(all, 0.5),
    p99: at(all, 0.99),
    p999: latencies.length < LEAST_P999 ? null : at(all, 0.999),
    worst: at(all, 1),
  }
}

/** The value at this share of the sorted values. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] as number
}

/** Makes a histogram whose buckets double in width. */
function histogramOf(latencies: readonly number[]): Report['histogram'] {
  const rows = latencies.map(latency => Math.floor(Math.log2(Math.max(latency, 2 ** -6))))
  if (rows.length === 0) return []
  const first = rows.reduce((a, b) => Math.min(a, b))
  const counts = Array<number>(rows.reduce((a, b) => Math.max(a, b)) - first + 1).fill(0)
  for (const row of rows) counts[row - first] = (counts[row - first] as number) + 1
  return counts.map((count, row) => ({ from: 2 ** (first + row), to: 2 ** (first + row + 1), count }))
}

/** The report as text. */
export function text(result: Report): string {
  const { store, duration, heartbeats, failed, latency, unresponsiveness, loopDelay, gc, advice, unknown } = result
  const lines = [
    `${counted(heartbeats, 'heartbeat')} over ${store} in ${formatDuration(duration)}, ${failed || 'none'} failed`,
    '',
  ]
  if (latency) {
    const { p50, p99, p999, worst } = latency
    lines.push(
      `${paint('bold', 'latency')}          p50 ${ms(p50)}, p99 ${ms(p99)}${p999 === null ? '' : `, p99.9 ${ms(p999)}`}, worst ${ms(worst)}`,
      ...histogramLines(result.histogram),
    )
  }
  lines.push(
    `${paint('bold', 'unresponsive')}     ${ms(unresponsiveness)}`,
    `${paint('bold', 'event loop')}       p99 ${ms(loopDelay.p99)} late, worst ${ms(loopDelay.worst)}; ` +
      `${counted(gc.pauses, 'garbage collection')}, worst ${ms(gc.worst)}`,
    '',
  )
  if (advice) lines.push(...adviceLines(advice))
  else
    lines.push(
      `Too few heartbeats to advise a ttl: ${counted(heartbeats, 'was', 'were')} answered, ${LEAST_ANSWERS} are needed.`,
    )
  lines.push('', paint('bold', 'Not measured'), ...unknown.map(sentence => `  ${sentence}`))
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
  const heads = ['   ttl', 'heartbeat', 'tolerates, with one lost', 'takeover at most']
  const row = (cells: readonly string[]): string =>
    cells.map((cell, i) => cell.padStart(heads[i]?.length ?? 0)).join('   ')
  return [
    reason,
    `${paint('bold', `Use a ttl of ${formatDuration(ttl)}`)}, with a heartbeat every ${formatDuration(heartbeat)}. ` +
      `For a faster takeover use a shorter one, but at least ${formatDuration(leastTtl)}.`,
    '',
    `  ${row(heads)}`,
    ...choices.map(
      choice => `  ${row([choice.ttl, choice.heartbeat, choice.tolerates, choice.takeover].map(formatDuration))}`,
    ),
  ]
}

/** Formats milliseconds, with two digits below 10 ms. */
function ms(value: number): string {
  return value < 10 ? `${Number(value.toPrecision(2))} ms` : formatDuration(value)
}
