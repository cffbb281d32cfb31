import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Better, Report, type Results, type Summary, summary } from '../bench/report.ts'
import { between } from './members.ts'
import { table } from './proof/page.ts'

const RESULTS = 'bench/results/latest.json'

interface Row {
  readonly what: string
  readonly scenario: string
  readonly variant: string
  readonly value: string
  readonly unit?: string
  /** Without: the row has no ratios. */
  readonly better?: Better
  readonly own?: string
}

const ROWS: readonly Row[] = [
  { what: 'pairs/s, 1 at a time', ...at('pairs', '1 at a time', 'rate'), better: Math.max },
  { what: 'pairs/s, 64 at a time', ...at('pairs', '64 at a time', 'rate'), better: Math.max },
  { what: 'p99, 64 at a time', ...at('pairs', '64 at a time', 'p99'), unit: ' ms', better: Math.min },
  { what: 'handoffs/s, 32 waiters', ...at('handoffs', '', 'rate'), better: Math.max },
  { what: 'commands/s, 10,000 waiters', ...at('crowd', '10,000 waiters', 'commands') },
  {
    what: 'Redlock pairs/s, 64 at a time',
    ...at('redlock-pairs', '64 at a time', 'rate'),
    better: Math.max,
    own: 'holdfast-five',
  },
  {
    what: 'CPU of 5,000 renewed leases',
    ...at('renewals', '5,000 leases of 10 s', 'clientCpu'),
    unit: ' %',
    better: Math.min,
  },
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

const STORE_HEAD = ['', 'pairs/s, 1 at a time', 'p50, ms', 'pairs/s, 64 at a time', 'handoffs/s, 32 waiters']

const HEAD = ['', 'Holdfast', 'to plain commands', 'to best library']

/** README.md, with the figures of the last run of the benchmark. A row without a figure of Holdfast is left out. */
export function readmePage(page: string): string {
  const report = lastRun()
  const { machine, floors } = report.results
  const rows = ROWS.flatMap(({ what, scenario, variant, value, unit = '', better, own = 'holdfast' }) => {
    const told = summary(report.values(scenario, variant, own, value))
    if (!told) return []
    const others = better ? [floors[own], report.bestPeer(scenario, variant, own, value, better)] : ['', '']
    const ratios = others.map(other => summary(report.ratios(scenario, variant, own, other ?? '', value)))
    return [[what, rounded(told.middle) + unit, ...ratios.map(rangeOf)]]
  })
  const about = `Redis ${machine.redis}, ${machine.cores} cores ([dates](bench/README.md#when-it-was-measured)). Low p99 and CPU are good:`
  const [head = '', , ...lines] = table(HEAD, rows).split('\n')
  // The alignments are one word: the README has a limit.
  return between(page, 'performance', [about, '', head, '|---|--:|--:|--:|', ...lines].join('\n'))
}

/** docs/performance.md, with the medians of each store in the last run. */
export function performancePage(page: string): string {
  const report = lastRun()
  const rows = STORES.map(([name, peer, prefix]) => {
    const median = (scenario: string, variant: string, value: string): string => {
      const told = summary(report.values(prefix + scenario, variant, peer, value))
      return told ? rounded(told.middle) : '–'
    }
    const [one, many] = ['1 at a time', '64 at a time']
    const pairs = [median('pairs', one, 'rate'), median('pairs', one, 'p50'), median('pairs', many, 'rate')]
    return [name, ...pairs, median('handoffs', '', 'rate')]
  })
  return between(page, 'stores', table(STORE_HEAD, rows))
}

function lastRun(): Report {
  return new Report(JSON.parse(readFileSync(join(import.meta.dirname, '..', RESULTS), 'utf8')) as Results)
}

function at(scenario: string, variant: string, value: string): Pick<Row, 'scenario' | 'variant' | 'value'> {
  return { scenario, variant, value }
}

/** Of the rounds. Trials of one round are minutes apart, so a median would look more certain than it is. */
function rangeOf(ratio: Summary | undefined): string {
  if (!ratio) return '–'
  const [least, most] = [ratio.least, ratio.most].map(value => value.toFixed(2))
  return least === most ? `${least}` : `${least}–${most}`
}

/** Three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}
