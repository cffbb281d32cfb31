import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Better, Report, type Results, summary } from '../bench/report.ts'
import { AWAY, ON_ONE_MACHINE } from '../bench/scenarios/handover.ts'
import { METERED, SILENT } from '../bench/scenarios/observers.ts'
import { between } from './members.ts'
import { table } from './proof/page.ts'

const RESULTS = 'bench/results/latest.json'

const [ONE, MANY, LEASES] = ['1 at a time', '64 at a time', '5,000 leases of 10 s'] as const

interface Row {
  readonly what: string
  readonly scenario: string
  readonly variant: string
  readonly value: string
  readonly unit?: string
  readonly better: Better
  readonly own?: string
}

/** What a user decides by. */
const ROWS: readonly Row[] = [
  { what: 'handoffs/s, 32 waiters', ...at('handoffs', '', 'rate'), better: Math.max },
  { what: 'commands/s, 1,000 waiters', ...at('crowd', '1,000 waiters', 'commands'), better: Math.min },
  {
    what: 'loss reported, server killed, ttl 2.5 s',
    ...at('faults', 'the server is killed', 'reported'),
    unit: ' ms',
    better: Math.min,
  },
  {
    what: 'p99, 64 at a time, one of five servers hangs',
    ...at('redlock-stopped', MANY, 'stopped99'),
    unit: ' ms',
    better: Math.min,
    own: 'holdfast-five',
  },
  { what: 'pairs/s, 64 at a time', ...at('pairs', MANY, 'rate'), better: Math.max },
  { what: 'pairs/s, 1 at a time', ...at('pairs', ONE, 'rate'), better: Math.max },
]

/** What is measured of each store: its name in the tables, the adapter, and what the names of its scenarios begin with. */
const STORES: readonly (readonly [string, string, string])[] = [
  ['Redis', 'holdfast', ''],
  ['Redlock, five servers', 'holdfast-five', 'redlock-'],
  ['PostgreSQL', 'holdfast-postgres', ''],
  ['advisory locks', 'holdfast-advisory', ''],
  ['SQLite', 'holdfast-sqlite', ''],
  ['etcd', 'holdfast-etcd', ''],
  ['ZooKeeper', 'holdfast-zookeeper', ''],
]

const STORE_COLUMNS: readonly (readonly [title: string, scenario: string, variant: string, value: string])[] = [
  ['pairs/s, 1 at a time', 'pairs', ONE, 'rate'],
  ['p50, ms', 'pairs', ONE, 'p50'],
  ['pairs/s, 64 at a time', 'pairs', MANY, 'rate'],
  ['handoffs/s, 32 waiters', 'handoffs', '', 'rate'],
  ['handover, ms', 'handover', ON_ONE_MACHINE, 'p50'],
  ['handover 10 ms away, round trips', 'handover', AWAY, 'trips'],
]

interface Comparison {
  readonly what: string
  readonly at: readonly [scenario: string, ...variants: string[]]
  /** An adapter, and what it is called. The adapter `best` is the best other library. */
  readonly to: readonly [peer: string, called: string]
  readonly own?: string
  readonly value?: string
  readonly better?: Better
}

const [FIVE, POSTGRES] = ['holdfast-five', 'holdfast-postgres'] as const
const [ETCD, ZOOKEEPER] = ['holdfast-etcd', 'holdfast-zookeeper'] as const
const PLAIN = ['floor', '`SET NX PX`, compare and delete'] as const
const BEST = ['best', 'the best other library'] as const
const TABLE = ['floor-postgres', 'a locks table'] as const
const POOL = ['advisory-pool', 'advisory locks, a pool of 16, no token'] as const
const RECIPE = ['floor-etcd', "etcd's recipe"] as const

/** In addition to the rows of the README. */
const COMPARED: readonly Comparison[] = [
  { what: 'pairs/s over Redis, 1 at a time', at: ['pairs', ONE], to: PLAIN },
  { what: 'pairs/s over Redis, 64 at a time', at: ['pairs', MANY], to: PLAIN },
  { what: 'handoffs/s over Redis', at: ['handoffs', ''], to: ['live-mutex', 'live-mutex, a broker of its own'] },
  { what: 'handoffs/s over Redis', at: ['handoffs', ''], to: ['floor-push', 'one publish and one script'] },
  {
    what: 'sets of two names/s, nobody waits',
    at: ['sets', `${ONE}, nobody waits`, '16 at a time, nobody waits'],
    to: ['redlock5', 'redlock 5'],
  },
  {
    what: 'sets of two names/s, 16 tasks on 8 names',
    at: ['sets', '16 tasks, 8 names'],
    to: ['redlock5', 'redlock 5, in no order'],
  },
  {
    what: 'permits/s, limit 1 to 100, nobody waits',
    at: ['permits', ...[1, 4, 16, 100].map(limit => `limit ${limit}, nobody waits`)],
    to: ['redis-semaphore', 'redis-semaphore'],
  },
  {
    what: 'permits/s, limit 1 to 16, 32 tasks',
    at: ['permits', ...[1, 4, 16].map(limit => `limit ${limit}, 32 tasks`)],
    to: ['redis-semaphore', 'redis-semaphore, in no order'],
  },
  { what: 'held leases per CPU, of 5,000', at: ['renewals', LEASES], to: BEST, value: 'clientCpu', better: Math.min },
  { what: 'pairs/s over Redlock, 1 at a time', at: ['redlock-pairs', ONE], to: BEST, own: FIVE },
  { what: 'pairs/s over Redlock, 64 at a time', at: ['redlock-pairs', MANY], to: BEST, own: FIVE },
  { what: 'pairs/s over PostgreSQL, 1 at a time', at: ['pairs', ONE], to: TABLE, own: POSTGRES },
  { what: 'handoffs/s over PostgreSQL', at: ['handoffs', ''], to: TABLE, own: POSTGRES },
  { what: 'pairs/s over PostgreSQL, 1 at a time', at: ['pairs', ONE], to: POOL, own: POSTGRES },
  { what: 'pairs/s over PostgreSQL, 64 at a time', at: ['pairs', MANY], to: POOL, own: POSTGRES },
  { what: 'handoffs/s over PostgreSQL', at: ['handoffs', ''], to: POOL, own: POSTGRES },
  { what: 'pairs/s over etcd, 64 at a time', at: ['pairs', MANY], to: RECIPE, own: ETCD },
  { what: 'handoffs/s over etcd', at: ['handoffs', ''], to: RECIPE, own: ETCD },
  {
    what: 'pairs/s over ZooKeeper, 64 at a time',
    at: ['pairs', MANY],
    to: ['floor-zookeeper', 'creating and deleting a node'],
    own: ZOOKEEPER,
  },
]

/** What is measured, where, and each value with the words after it. */
type Cost = readonly [what: string, scenario: string, variant: string, ...(readonly [value: string, unit: string])[]]

const CPU = ['clientCpu', ' % of a processor'] as const
const REQUESTS = ['requests', ' requests/s'] as const
const EVENTS = ['cost', ' % of the CPU of a pair over Redis'] as const

const COSTS: readonly Cost[] = [
  ['5,000 leases of 10 s, renewed every 3.3 s', 'renewals', LEASES, REQUESTS, CPU],
  ['100,000 leases of 30 s', 'renewals', '100,000 leases of 30 s', REQUESTS, CPU],
  ['10,000 waiters on one name', 'crowd', '10,000 waiters', ['commands', ' commands/s'], CPU, ['memory', ' KB each']],
  ['events without subscribers', 'observers', SILENT, EVENTS],
  ['`holdfast/prometheus`', 'observers', METERED, EVENTS],
  ["`import 'holdfast'`", 'cold-start', "import 'holdfast', as it is published", ['over', ' ms']],
]

const FENCES: readonly (readonly [what: string, peer: string])[] = [
  ['Redis: a script instead of `SET`', 'holdfast'],
  ['PostgreSQL, a transaction of one statement, pg', 'holdfast-postgres'],
  ['SQLite', 'holdfast-sqlite'],
  ['a file', 'fence-files'],
  ['an object in Apache', 'fence-objects'],
  ['an HTTP service over SQLite, checked in its write', 'fence-http'],
  ['an HTTP service with marks in Redis', 'fence-http-redis'],
]

const HEAD = ['', 'Holdfast', 'best other library over Redis', 'better, by round']

/** README.md, with the figures of the last run of the benchmark. A row without a figure of Holdfast is left out. */
export function readmePage(page: string): string {
  const report = lastRun()
  const rows = ROWS.flatMap(({ what, scenario, variant, value, unit = '', better, own = 'holdfast' }) => {
    const peer = report.bestPeer(scenario, variant, own, value, better)
    const ours = middle(report, scenario, variant, value, own)
    if (ours === undefined || peer === undefined) return []
    const theirs = middle(report, scenario, variant, value, peer)
    const ratios = report.ratios(scenario, variant, own, peer, value)
    return [[what, ours + unit, theirs === undefined ? '–' : theirs + unit, verdict(ratios, better)]]
  })
  const [head = '', , ...lines] = table(HEAD, rows).split('\n')
  // The alignments are one word: the README has a limit.
  return between(page, 'performance', [head, '|---|--:|--:|---|', ...lines].join('\n'))
}

/** docs/performance.md, with the figures of the last run. What it did not measure is left out. */
export function performancePage(page: string): string {
  const report = lastRun()
  const stores = STORES.map(([name, peer, prefix]) => [
    name,
    ...STORE_COLUMNS.map(
      ([, scenario, variant, value]) => middle(report, prefix + scenario, variant, value, peer) ?? '–',
    ),
  ])
  const compared = COMPARED.flatMap(row => {
    const ratios = range(gainsOf(report, row))
    return ratios === undefined ? [] : [[row.what, ratios, row.to[1]]]
  })
  const costs = COSTS.flatMap(([what, scenario, variant, ...values]) => {
    const cells = values.flatMap(([value, unit]) => {
      const found = summary(report.values(scenario, variant, 'holdfast', value))
      return found ? [(unit.startsWith(' %') ? found.middle.toFixed(1) : rounded(found.middle)) + unit] : []
    })
    return cells.length < values.length ? [] : [[what, cells.join(', '), `\`--only ${scenario}\``]]
  })
  const fences = FENCES.map(([what, peer]) => {
    const at = (variant: string, value: string): string => middle(report, 'fences', variant, value, peer) ?? '–'
    return [what, at(ONE, 'plainTrips'), at(ONE, 'fencedTrips'), at(ONE, 'ratio'), at('16 at a time', 'ratio')]
  })
  const tables = {
    stores: table(['', ...STORE_COLUMNS.map(([title]) => title)], stores),
    compared: table(['', 'Holdfast', 'compared with'], compared),
    costs: table(['', 'cost', 'measured by'], costs),
    fences: table(['', 'round trips without', 'with', 'rate, 1 at a time', 'rate, 16 at a time'], fences),
  }
  return Object.entries(tables).reduce((text, [name, rows]) => between(text, name, rows), page)
}

function middle(report: Report, scenario: string, variant: string, value: string, peer: string): string | undefined {
  const found = summary(report.values(scenario, variant, peer, value))
  return found && rounded(found.middle)
}

/** In each round of each variant. */
function gainsOf(report: Report, { at, to: [other], ...row }: Comparison): (number | undefined)[] {
  const [scenario, ...variants] = at
  const { own = 'holdfast', value = 'rate', better = Math.max } = row
  return variants.flatMap(variant => {
    const peer = other === 'best' ? report.bestPeer(scenario, variant, own, value, better) : other
    return peer === undefined ? [] : gains(report.ratios(scenario, variant, own, peer, value), better)
  })
}

function lastRun(): Report {
  return new Report(JSON.parse(readFileSync(join(import.meta.dirname, '..', RESULTS), 'utf8')) as Results)
}

function at(scenario: string, variant: string, value: string): Pick<Row, 'scenario' | 'variant' | 'value'> {
  return { scenario, variant, value }
}

/** The range over the rounds. Trials of one round are minutes apart, so a median would look more certain than it is. */
function verdict(ratios: readonly (number | undefined)[], better: Better): string {
  const times = gains(ratios, better)
  const found = summary(times)
  if (!found) return '–'
  return `${found.least >= 1 ? '✅' : found.most <= 1 ? '❌' : '≈'} ${range(times)}`
}

/** More than 1: Holdfast is better. */
function gains(ratios: readonly (number | undefined)[], better: Better): (number | undefined)[] {
  return ratios.map(ratio => (ratio === undefined || better === Math.max ? ratio : 1 / ratio))
}

function range(ratios: readonly (number | undefined)[]): string | undefined {
  const found = summary(ratios)
  if (!found) return undefined
  const [least, most] = [found.least, found.most].map(digits)
  return `${least === most ? least : `${least}–${most}`} times`
}

function digits(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0)
}

/** Three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}
