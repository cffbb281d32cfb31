import { type Better, type Report, type Summary, summary } from './report.ts'
import { AWAY, ON_ONE_MACHINE } from './scenarios/handover.ts'
import { NOBODY } from './scenarios/observers.ts'

interface Target {
  readonly what: string
  readonly wanted: string
  /** `undefined`: not measured. */
  measured(report: Report): Summary | undefined
  isMet(value: number): boolean
}

const OWN = 'holdfast'
const POSTGRES = 'holdfast-postgres'
const FLOOR = 'floor'
/** Over five servers. */
const [OWN_REDLOCK, FLOOR_REDLOCK] = ['holdfast-five', 'floor-five']

const atLeast = (least: number) => (value: number) => value >= least
const atMost = (most: number) => (value: number) => value <= most

/** What the project set itself. Ratios are medians of the ratios within each round. */
const all: readonly Target[] = [
  ...[
    { loops: 1, least: 0.88 },
    { loops: 64, least: 1.3 },
    { loops: 256, least: 1.5 },
  ].map(({ loops, least }) => ({
    what: `pairs/s, ${loops} at a time, to the floor`,
    wanted: `>= ${least}`,
    measured: (report: Report) => ratio(report, 'pairs', `${loops} at a time`, FLOOR, 'rate'),
    isMet: atLeast(least),
  })),
  {
    what: 'p99, 64 at a time, to the floor',
    wanted: '<= 1.5',
    measured: report => ratio(report, 'pairs', '64 at a time', FLOOR, 'p99'),
    isMet: atMost(1.5),
  },
  {
    what: 'client CPU per pair, 64 at a time, to the floor',
    wanted: '<= 0.5',
    measured: report => ratio(report, 'pairs', '64 at a time', FLOOR, 'clientCpu'),
    isMet: atMost(0.5),
  },
  ...[
    { loops: 1, least: 0.85 },
    { loops: 64, least: 1 },
    { loops: 256, least: 1 },
  ].map(({ loops, least }) => ({
    what: `pairs/s, ${loops} at a time, to the best Redis peer`,
    wanted: `>= ${least}`,
    measured: (report: Report) => toTheBest(report, 'pairs', `${loops} at a time`, 'rate', Math.max),
    isMet: atLeast(least),
  })),
  {
    what: 'handoffs/s, to the best Redis peer',
    wanted: '>= 2',
    measured: report => toTheBest(report, 'handoffs', '', 'rate', Math.max),
    isMet: atLeast(2),
  },
  {
    what: "handoffs/s, to live-mutex's own broker",
    wanted: '>= 1',
    measured: report => ratio(report, 'handoffs', '', 'live-mutex', 'rate'),
    isMet: atLeast(1),
  },
  {
    what: 'gap p50, to one publish and one script',
    wanted: '<= 1.5',
    measured: report => ratio(report, 'handoffs', '', 'floor-push', 'gap50'),
    isMet: atMost(1.5),
  },
  {
    what: 'requests per handoff, 32 waiters',
    wanted: '<= 4',
    measured: report => middle(report, 'handoffs', '', 'requests'),
    isMet: atMost(4),
  },
  {
    what: 'requests per handoff, 1,000 waiters',
    wanted: '<= 4',
    measured: report => middle(report, 'crowd', '1,000 waiters', 'requestsEach'),
    isMet: atMost(4),
  },
  {
    what: 'fairness (Jain), 32 waiters',
    wanted: '>= 0.99',
    measured: report => middle(report, 'handoffs', '', 'fairness'),
    isMet: atLeast(0.99),
  },
  {
    what: 'starved, 32 waiters',
    wanted: '0',
    measured: report => middle(report, 'handoffs', '', 'starved'),
    isMet: atMost(0),
  },
  ...['1,000 waiters', '10,000 waiters'].flatMap(variant =>
    [
      { what: 'commands/s', value: 'commands', most: 10 },
      { what: 'client CPU %', value: 'clientCpu', most: 1 },
      { what: 'KB each', value: 'memory', most: 5 },
    ].map(({ what, value, most }) => ({
      what: `${variant}: ${what}`,
      wanted: `<= ${most}`,
      measured: (report: Report) => middle(report, 'crowd', variant, value),
      isMet: atMost(most),
    })),
  ),
  {
    what: '1,000 waiters: all through, ms',
    wanted: '<= 700',
    measured: report => middle(report, 'crowd', '1,000 waiters', 'through'),
    isMet: atMost(700),
  },
  ...['5,000 leases of 10 s', '5,000 leases of 10 s, one stall of 1.5 s'].flatMap(variant => [
    {
      what: `${variant}: requests/s`,
      wanted: '<= 100',
      measured: (report: Report) => middle(report, 'renewals', variant, 'requests'),
      isMet: atMost(100),
    },
    {
      what: `${variant}: client CPU, to the best peer`,
      wanted: '<= 1',
      measured: (report: Report) => toTheBest(report, 'renewals', variant, 'clientCpu', Math.min),
      isMet: atMost(1),
    },
    {
      what: `${variant}: lost`,
      wanted: '0',
      measured: (report: Report) => middle(report, 'renewals', variant, 'lost'),
      isMet: atMost(0),
    },
  ]),
  {
    what: '100,000 leases of 30 s: lost',
    wanted: '0',
    measured: report => middle(report, 'renewals', '100,000 leases of 30 s', 'lost'),
    isMet: atMost(0),
  },
  ...[
    { loops: 1, least: 0.8 },
    { loops: 64, least: 1.6 },
  ].flatMap(({ loops, least }) => [
    {
      what: `Redlock: pairs/s, ${loops} at a time, to the floor`,
      wanted: `>= ${least}`,
      measured: (report: Report) =>
        ratio(report, 'redlock-pairs', `${loops} at a time`, FLOOR_REDLOCK, 'rate', OWN_REDLOCK),
      isMet: atLeast(least),
    },
    {
      what: `Redlock: pairs/s, ${loops} at a time, to the best peer`,
      wanted: '>= 1',
      measured: (report: Report) =>
        toTheBest(report, 'redlock-pairs', `${loops} at a time`, 'rate', Math.max, OWN_REDLOCK),
      isMet: atLeast(1),
    },
  ]),
  {
    what: 'Redlock: handoffs/s, 32 waiters in two processes',
    wanted: '>= 1,000',
    measured: report => middle(report, 'redlock-handoffs', '', 'rate', OWN_REDLOCK),
    isMet: atLeast(1_000),
  },
  {
    what: 'over PostgreSQL: pairs/s, 1 at a time, to a locks table',
    wanted: '>= 1',
    measured: report => ratio(report, 'pairs', '1 at a time', 'floor-postgres', 'rate', POSTGRES),
    isMet: atLeast(1),
  },
  ...[1, 64].map(loops => ({
    what: `Redlock: p99 with one of five stopped, ${loops} at a time, to all five`,
    wanted: '<= 2',
    measured: (report: Report) => middle(report, 'redlock-stopped', `${loops} at a time`, 'ratio', OWN_REDLOCK),
    isMet: atMost(2),
  })),
  {
    what: 'over PostgreSQL: pairs/s, 64 at a time, to advisory locks through a pool of 16',
    wanted: '>= 2.5',
    measured: report => ratio(report, 'pairs', '64 at a time', 'advisory-pool', 'rate', POSTGRES),
    isMet: atLeast(2.5),
  },
  {
    what: 'over PostgreSQL: starved, 32 waiters',
    wanted: '0',
    measured: report => middle(report, 'handoffs', '', 'starved', POSTGRES),
    isMet: atMost(0),
  },
  {
    what: "over etcd, gap p50, to etcd's own recipe",
    wanted: '<= 2',
    measured: report => ratio(report, 'handoffs', '', 'floor-etcd', 'gap50', 'holdfast-etcd'),
    isMet: atMost(2),
  },
  ...Object.entries({ 'on one machine': ON_ONE_MACHINE, '10 ms away': AWAY }).flatMap(([where, variant]) =>
    [OWN, OWN_REDLOCK, POSTGRES, 'holdfast-etcd', 'holdfast-zookeeper', 'holdfast-sqlite'].map(own => ({
      what: `hand-over of leadership p50, in round trips: ${own}, ${where}`,
      wanted: '<= 3',
      measured: (report: Report) =>
        middle(report, own === OWN_REDLOCK ? 'redlock-handover' : 'handover', variant, 'trips', own),
      isMet: atMost(3),
    })),
  ),
  ...['holdfast-memory', 'holdfast-sqlite', OWN].map(own => ({
    what: `a pair's CPU for events that nobody listens to, %: ${own}`,
    wanted: '< 2',
    measured: (report: Report) => middle(report, 'observers', NOBODY, 'cost', own),
    isMet: (value: number) => value < 2,
  })),
  ...[POSTGRES, 'holdfast-sqlite', OWN, 'fence-http', 'fence-http-redis', 'fence-objects', 'fence-files'].map(own => ({
    what: `round trips that a fence adds to a write: ${own}`,
    wanted: '<= 1',
    measured: (report: Report) => middle(report, 'fences', '1 at a time', 'extraTrips', own),
    isMet: atMost(1),
  })),
  ...[
    { variant: 'limit 4, nobody waits', most: 2 },
    { variant: 'limit 4, 32 tasks', most: 4 },
  ].map(({ variant, most }) => ({
    what: `requests per permit and its release, ${variant}`,
    wanted: `<= ${most}`,
    measured: (report: Report) => middle(report, 'permits', variant, 'requests'),
    isMet: atMost(most),
  })),
  ...['limit 1', 'limit 4'].flatMap(limit =>
    ['nobody waits', '32 tasks'].map(tasks => ({
      what: `permits/s, ${limit}, ${tasks}, to redis-semaphore`,
      wanted: '>= 1',
      measured: (report: Report) => ratio(report, 'permits', `${limit}, ${tasks}`, 'redis-semaphore', 'rate'),
      isMet: atLeast(1),
    })),
  ),
  ...[
    { variant: 'limit 4, nobody waits', than: '4 plain leases', least: 0.9 },
    { variant: 'limit 100, nobody waits', than: '100 plain leases', least: 0.9 },
    { variant: 'limit 4, 32 tasks that work', than: 'limit 1, 32 tasks that work', least: 2 },
  ].map(({ variant, than, least }) => ({
    what: `permits/s, ${variant}, to those of ${than}`,
    wanted: `>= ${least}`,
    measured(report: Report) {
      const [own, other] = [variant, than].map(name => middle(report, 'permits', name, 'rate'))
      if (!own || !other) return undefined
      const ratio = own.middle / other.middle
      return { middle: ratio, least: ratio, most: ratio, of: own.of }
    },
    isMet: atLeast(least),
  })),
  {
    what: 'permits, limit 4, 32 tasks: fairness (Jain)',
    wanted: '>= 0.99',
    measured: report => middle(report, 'permits', 'limit 4, 32 tasks', 'fairness'),
    isMet: atLeast(0.99),
  },
  ...['16 at a time, nobody waits', '16 tasks, 8 names'].map(variant => ({
    what: `two names, ${variant}: sets/s, to redlock 5`,
    wanted: '>= 1',
    measured: (report: Report) => ratio(report, 'sets', variant, 'redlock5', 'rate'),
    isMet: atLeast(1),
  })),
  {
    what: "import 'holdfast', ms over bare Node",
    wanted: '<= 30',
    measured: report => middle(report, 'cold-start', "import 'holdfast', as it is published", 'over'),
    isMet: atMost(30),
  },
  {
    what: 'holdfast run over SQLite, ms over bare Node',
    wanted: '<= 150',
    measured: report =>
      middle(report, 'cold-start', 'holdfast run NAME -- true, over SQLite, as it is published', 'over'),
    isMet: atMost(150),
  },
]

/** The table of targets, each with what was measured. A target between the rounds is undecided. */
export function targets(report: Report): string {
  const rows = all.map(({ what, wanted, measured, isMet }) => {
    const told = measured(report)
    if (told === undefined) return `| ${what} | ${wanted} | not measured | |`
    const [middle, least, most] = [told.middle, told.least, told.most].map(value => Number(value.toPrecision(3)))
    const range = least === most ? '' : ` (${least}–${most})`
    const met = [told.least, told.most].map(isMet)
    const answer = met.every(Boolean) ? 'yes' : met.some(Boolean) ? 'undecided' : '**no**'
    return `| ${what} | ${wanted} | ${middle}${range} | ${answer} |`
  })
  return ['### Targets', '', '| | target | measured | met |', '| --- | ---: | ---: | --- |', ...rows, ''].join('\n')
}

function middle(report: Report, scenario: string, variant: string, value: string, own = OWN): Summary | undefined {
  return summary(report.values(scenario, variant, own, value))
}

function ratio(
  report: Report,
  scenario: string,
  variant: string,
  other: string,
  value: string,
  own = OWN,
): Summary | undefined {
  return summary(report.ratios(scenario, variant, own, other, value))
}

/** To the best other library. */
function toTheBest(
  report: Report,
  scenario: string,
  variant: string,
  value: string,
  better: Better,
  own = OWN,
): Summary | undefined {
  const best = report.bestPeer(scenario, variant, own, value, better)
  return best === undefined ? undefined : ratio(report, scenario, variant, best, value, own)
}
