import { type Better, type Report, type Summary, summary } from './report.ts'
import { AWAY, ON_ONE_MACHINE } from './scenarios/handover.ts'
import { SILENT } from './scenarios/observers.ts'

/** `undefined`: not measured. */
type Measured = (report: Report) => Summary | undefined

/** What is measured, the target such as `<= 1.5`, and how. */
type Target = readonly [what: string, wanted: string, measured: Measured]

const OWN = 'holdfast'
const POSTGRES = 'holdfast-postgres'
/** Over five servers. */
const REDLOCK = 'holdfast-five'
const CROWDS = ['1,000 waiters', '10,000 waiters']
const MANY = ['5,000 leases of 10 s', '5,000 leases of 10 s, one stall of 1.5 s'] as const

/** What the project set itself. Ratios are medians of the ratios within each round. */
const all: readonly Target[] = [
  ...pairs('to the floor', { 1: 0.88, 64: 1.3 }, loops => ratio('pairs', loops, 'floor', 'rate')),
  ['p99, 64 at a time, to the floor', '<= 1.5', ratio('pairs', '64 at a time', 'floor', 'p99')],
  ['client CPU per pair, 64 at a time, to the floor', '<= 0.5', ratio('pairs', '64 at a time', 'floor', 'clientCpu')],
  ...pairs('to the best Redis peer', { 1: 0.85, 64: 1 }, loops => toTheBest('pairs', loops, 'rate', Math.max)),
  ['handoffs/s, to the best Redis peer', '>= 2', toTheBest('handoffs', '', 'rate', Math.max)],
  ["handoffs/s, to live-mutex's own broker", '>= 1', ratio('handoffs', '', 'live-mutex', 'rate')],
  ['gap p50, to one publish and one script', '<= 1.5', ratio('handoffs', '', 'floor-push', 'gap50')],
  ['requests per handoff, 32 waiters', '<= 4', middle('handoffs', '', 'requests')],
  ['requests per handoff, 1,000 waiters', '<= 4', middle('crowd', '1,000 waiters', 'requestsEach')],
  ['fairness (Jain), 32 waiters', '>= 0.99', middle('handoffs', '', 'fairness')],
  ['starved, 32 waiters', '0', middle('handoffs', '', 'starved')],
  ...CROWDS.flatMap((crowd): Target[] => [
    [`${crowd}: commands/s`, '<= 10', middle('crowd', crowd, 'commands')],
    [`${crowd}: client CPU %`, '<= 1', middle('crowd', crowd, 'clientCpu')],
    [`${crowd}: KB each`, '<= 5', middle('crowd', crowd, 'memory')],
  ]),
  ['1,000 waiters: all served, ms', '<= 700', middle('crowd', '1,000 waiters', 'allServed')],
  ...MANY.flatMap((leases): Target[] => [
    [`${leases}: requests/s`, '<= 100', middle('renewals', leases, 'requests')],
    [`${leases}: lost`, '0', middle('renewals', leases, 'lost')],
  ]),
  ['5,000 leases of 10 s: client CPU, to the best peer', '<= 1', toTheBest('renewals', MANY[0], 'clientCpu', Math.min)],
  ['100,000 leases of 30 s: lost', '0', middle('renewals', '100,000 leases of 30 s', 'lost')],
  ...pairs('Redlock to the floor', { 1: 0.8, 64: 1.6 }, loops =>
    ratio('redlock-pairs', loops, 'floor-five', 'rate', REDLOCK),
  ),
  ...pairs('Redlock to the best peer', { 1: 1, 64: 1 }, loops =>
    toTheBest('redlock-pairs', loops, 'rate', Math.max, REDLOCK),
  ),
  ['Redlock: handoffs/s, 32 waiters in two processes', '>= 1,000', middle('redlock-handoffs', '', 'rate', REDLOCK)],
  ...['1 at a time', '64 at a time'].map(
    (loops): Target => [
      `Redlock: p99 with one of five stopped, ${loops}, to all five`,
      '<= 2',
      middle('redlock-stopped', loops, 'ratio', REDLOCK),
    ],
  ),
  ...pairs('over PostgreSQL, to a locks table', { 1: 1 }, loops =>
    ratio('pairs', loops, 'floor-postgres', 'rate', POSTGRES),
  ),
  ...pairs('over PostgreSQL, to advisory locks through a pool of 16', { 64: 2.5 }, loops =>
    ratio('pairs', loops, 'advisory-pool', 'rate', POSTGRES),
  ),
  ['over PostgreSQL: starved, 32 waiters', '0', middle('handoffs', '', 'starved', POSTGRES)],
  ["over etcd, gap p50, to etcd's own recipe", '<= 2', ratio('handoffs', '', 'floor-etcd', 'gap50', 'holdfast-etcd')],
  ...Object.entries({ 'on one machine': ON_ONE_MACHINE, '10 ms away': AWAY }).flatMap(([where, variant]) =>
    [
      OWN,
      REDLOCK,
      POSTGRES,
      'holdfast-etcd',
      'holdfast-zookeeper',
      ...(variant === AWAY ? [] : ['holdfast-sqlite']),
    ].map(
      (own): Target => [
        `handover of leadership p50, in round trips: ${own}, ${where}`,
        '<= 3',
        middle(own === REDLOCK ? 'redlock-handover' : 'handover', variant, 'trips', own),
      ],
    ),
  ),
  ...['holdfast-memory', 'holdfast-sqlite', OWN].map(
    (own): Target => [
      `a pair's CPU for events without subscribers, %: ${own}`,
      '< 2',
      middle('observers', SILENT, 'cost', own),
    ],
  ),
  ...[POSTGRES, 'holdfast-sqlite', OWN, 'fence-http', 'fence-http-redis', 'fence-objects', 'fence-files'].map(
    (own): Target => [
      `round trips that a fence adds to a write: ${own}`,
      '<= 1',
      middle('fences', '1 at a time', 'extraTrips', own),
    ],
  ),
  ...Object.entries({ 'limit 4, nobody waits': 2, 'limit 4, 32 tasks': 4 }).map(
    ([variant, most]): Target => [
      `requests per permit and its release, ${variant}`,
      `<= ${most}`,
      middle('permits', variant, 'requests'),
    ],
  ),
  ...['limit 1, nobody waits', 'limit 1, 32 tasks', 'limit 4, nobody waits', 'limit 4, 32 tasks'].map(
    (variant): Target => [
      `permits/s, ${variant}, to redis-semaphore`,
      '>= 1',
      ratio('permits', variant, 'redis-semaphore', 'rate'),
    ],
  ),
  permits('limit 4, nobody waits', '4 plain leases', 0.9),
  permits('limit 100, nobody waits', '100 plain leases', 0.9),
  permits('limit 4, 32 tasks that work', 'limit 1, 32 tasks that work', 2),
  ['permits, limit 4, 32 tasks: fairness (Jain)', '>= 0.99', middle('permits', 'limit 4, 32 tasks', 'fairness')],
  ...['16 at a time, nobody waits', '16 tasks, 8 names'].map(
    (variant): Target => [
      `two names, ${variant}: sets/s, to redlock 5`,
      '>= 1',
      ratio('sets', variant, 'redlock5', 'rate'),
    ],
  ),
  [
    "import 'holdfast', ms over bare Node",
    '<= 30',
    middle('cold-start', "import 'holdfast', as it is published", 'over'),
  ],
  [
    'holdfast run over SQLite, ms over bare Node',
    '<= 150',
    middle('cold-start', 'holdfast run NAME -- true, over SQLite, as it is published', 'over'),
  ],
]

/** The table of targets, each with what was measured. A target between the rounds is undecided. */
export function targets(report: Report): string {
  const rows = all.map(([what, wanted, measured]) => {
    const found = measured(report)
    if (found === undefined) return `| ${what} | ${wanted} | not measured | |`
    const [middle, least, most] = [found.middle, found.least, found.most].map(value => Number(value.toPrecision(3)))
    const range = least === most ? '' : ` (${least}–${most})`
    const met = [found.least, found.most].map(value => isMet(value, wanted))
    const answer = met.every(Boolean) ? 'yes' : met.some(Boolean) ? 'undecided' : '**no**'
    return `| ${what} | ${wanted} | ${middle}${range} | ${answer} |`
  })
  return ['### Targets', '', '| | target | measured | met |', '| --- | ---: | ---: | --- |', ...rows, ''].join('\n')
}

function isMet(value: number, wanted: string): boolean {
  const bound = Number(wanted.replaceAll(/[^\d.]/g, ''))
  if (wanted.startsWith('>=')) return value >= bound
  return wanted.startsWith('<=') ? value <= bound : wanted.startsWith('<') ? value < bound : value === bound
}

function pairs(what: string, least: Readonly<Record<number, number>>, measured: (loops: string) => Measured): Target[] {
  return Object.entries(least).map(([loops, bound]) => [
    `pairs/s, ${loops} at a time, ${what}`,
    `>= ${bound}`,
    measured(`${loops} at a time`),
  ])
}

function permits(variant: string, than: string, least: number): Target {
  return [
    `permits/s, ${variant}, to those of ${than}`,
    `>= ${least}`,
    report => {
      const [own = [], other = []] = [variant, than].map(name => report.values('permits', name, OWN, 'rate'))
      return summary(own.map((rate, round) => rate && rate / (other[round] ?? Number.NaN)))
    },
  ]
}

function middle(scenario: string, variant: string, value: string, own = OWN): Measured {
  return report => summary(report.values(scenario, variant, own, value))
}

function ratio(scenario: string, variant: string, other: string, value: string, own = OWN): Measured {
  return report => summary(report.ratios(scenario, variant, own, other, value))
}

/** To the best other library. */
function toTheBest(scenario: string, variant: string, value: string, better: Better, own = OWN): Measured {
  return report => {
    const best = report.bestPeer(scenario, variant, own, value, better)
    return best === undefined ? undefined : ratio(scenario, variant, best, value, own)(report)
  }
}
