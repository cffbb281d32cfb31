import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../bench/statistics.ts'
import { between } from './members.ts'
import { table } from './proof/page.ts'

const RESULTS = 'bench/results/latest.json'

interface Results {
  readonly machine: { readonly date: string; readonly cores: number; readonly redis: string }
  /** By library: what it keeps locks in. */
  readonly overs: Readonly<Record<string, string>>
  /** By library: the plain commands that it is compared with. */
  readonly floors: Readonly<Record<string, string>>
  readonly measured: readonly {
    readonly scenario: string
    readonly variant: string
    readonly peer: string
    readonly round: number
    readonly values: Readonly<Record<string, number | readonly number[]>>
  }[]
}

interface Row {
  readonly what: string
  readonly scenario: string
  readonly variant: string
  readonly value: string
  readonly unit?: string
  /** Without: the row has no ratios. */
  readonly isBetter?: 'more' | 'less'
  readonly own?: string
}

const ROWS: readonly Row[] = [
  { what: 'pairs/s, 1 at a time (varies)', ...at('pairs', '1 at a time', 'rate'), isBetter: 'more' },
  { what: 'pairs/s, 64 at a time', ...at('pairs', '64 at a time', 'rate'), isBetter: 'more' },
  { what: 'p99, 64 at a time', ...at('pairs', '64 at a time', 'p99'), unit: ' ms', isBetter: 'less' },
  { what: 'handoffs/s, 32 waiters', ...at('handoffs', '', 'rate'), isBetter: 'more' },
  { what: 'commands/s, 10,000 waiters', ...at('crowd', '10,000 waiters', 'commands') },
  {
    what: 'Redlock pairs/s, 64 at a time',
    ...at('redlock-pairs', '64 at a time', 'rate'),
    isBetter: 'more',
    own: 'holdfast-five',
  },
  {
    what: 'CPU of 5,000 renewed leases',
    ...at('renewals', '5,000 leases of 10 s', 'clientCpu'),
    unit: ' %',
    isBetter: 'less',
  },
]

const HEAD = ['', 'Holdfast', 'to plain commands', 'to best library']

/** README.md, with the figures of the last run of the benchmark. A row without a figure of Holdfast is left out. */
export function readmePage(page: string): string {
  const results = JSON.parse(readFileSync(join(import.meta.dirname, '..', RESULTS), 'utf8')) as Results
  const { cores, redis } = results.machine
  const rows = ROWS.flatMap(row => {
    const own = middle(results, row, row.own ?? 'holdfast')
    if (own === undefined) return []
    const floor = results.floors[row.own ?? 'holdfast']
    const others = row.isBetter ? [floor, bestPeer(results, row)] : [undefined, undefined]
    const cells = others.map(peer => ratio(results, row, peer))
    return [[row.what, `${rounded(own)}${row.unit ?? ''}`, ...cells]]
  })
  const about = `Redis ${redis}, ${cores} cores, one machine ([dates](docs/performance.md)). Low p99 and CPU are good:`
  const [head = '', , ...lines] = table(HEAD, rows).split('\n')
  // The alignments are one word: the README has a limit.
  return between(page, 'performance', [about, '', head, '|---|--:|--:|--:|', ...lines].join('\n'))
}

/** The other library with the best median over the same kind of servers. */
function bestPeer(results: Results, row: Row): string | undefined {
  const { overs, floors } = results
  const own = row.own ?? 'holdfast'
  const peers = new Set(results.measured.filter(isOf(row)).map(({ peer }) => peer))
  const ranked = [...peers]
    .filter(peer => overs[peer] === overs[own] && floors[peer] !== peer && !/^(holdfast|baseline|floor)/.test(peer))
    .flatMap(peer => {
      const value = middle(results, row, peer)
      return value === undefined ? [] : [{ peer, value: row.isBetter === 'more' ? -value : value }]
    })
  return ranked.sort((one, other) => one.value - other.value)[0]?.peer
}

/** The median of the ratios within each round. */
function ratio(results: Results, row: Row, other: string | undefined): string {
  const base = byRound(results, row, other)
  const ratios = Array.from(
    byRound(results, row, row.own ?? 'holdfast'),
    ([round, value]) => value / (base.get(round) ?? 0),
  )
  const finite = ratios.filter(Number.isFinite)
  return finite.length === 0 ? '–' : median(finite).toFixed(2)
}

function middle(results: Results, row: Row, peer: string): number | undefined {
  const values = [...byRound(results, row, peer).values()]
  return values.length === 0 ? undefined : median(values)
}

function byRound(results: Results, row: Row, peer: string | undefined): Map<number, number> {
  const measured = results.measured.filter(isOf(row)).filter(each => each.peer === peer)
  return new Map(
    measured.flatMap(({ round, values }) => {
      const value = values[row.value]
      return typeof value === 'number' ? [[round, value]] : []
    }),
  )
}

function isOf({ scenario, variant }: Row): (each: Results['measured'][number]) => boolean {
  return each => each.scenario === scenario && each.variant === variant
}

function at(scenario: string, variant: string, value: string): Pick<Row, 'scenario' | 'variant' | 'value'> {
  return { scenario, variant, value }
}

/** Three digits. */
function rounded(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US')
}
