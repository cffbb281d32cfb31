import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Better, Report, type Results, summary } from '../bench/report.ts'
import { between } from './members.ts'
import { table } from './proof/page.ts'

const RESULTS = 'bench/results/latest.json'

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
    ...at('redlock-stopped', '64 at a time', 'stopped99'),
    unit: ' ms',
    better: Math.min,
    own: 'holdfast-five',
  },
  { what: 'pairs/s, 64 at a time', ...at('pairs', '64 at a time', 'rate'), better: Math.max },
  { what: 'pairs/s, 1 at a time', ...at('pairs', '1 at a time', 'rate'), better: Math.max },
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

const HEAD = ['', 'Holdfast', 'best other library over Redis', '']

/** README.md, with the figures of the last run of the benchmark. A row without a figure of Holdfast is left out. */
export function readmePage(page: string): string {
  const report = lastRun()
  const rows = ROWS.flatMap(({ what, scenario, variant, value, unit = '', better, own = 'holdfast' }) => {
    const median = (peer = ''): string | undefined => {
      const told = summary(report.values(scenario, variant, peer, value))
      return told && rounded(told.middle) + unit
    }
    const [ours, peer] = [median(own), report.bestPeer(scenario, variant, own, value, better)]
    if (ours === undefined || peer === undefined) return []
    return [[what, ours, median(peer) ?? '–', verdict(report.ratios(scenario, variant, own, peer, value), better)]]
  })
  const [head = '', , ...lines] = table(HEAD, rows).split('\n')
  // The alignments are one word: the README has a limit.
  return between(page, 'performance', [head, '|---|--:|--:|---|', ...lines].join('\n'))
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

/** The range over the rounds. Trials of one round are minutes apart, so a median would look more certain than it is. */
function verdict(ratios: readonly (number | undefined)[], better: Better): string {
  const times = summary(ratios.map(ratio => (ratio === undefined || better === Math.max ? ratio : 1 / ratio)))
  if (!times) return '–'
  const [least, most] = [times.least, times.most].map(digits)
  return `${times.middle >= 1 ? '✅' : '❌'} ${least === most ? least : `${least}–${most}`} times`
}

function digits(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0)
}

/** Three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}
