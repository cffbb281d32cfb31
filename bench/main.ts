import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { newFolder } from '../lab/servers/folder.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { type RedisServer, startRedis } from '../lab/servers/redis.ts'
import { commit } from '../script/commit.ts'
import { chart } from './chart.ts'
import { Worker } from './launch.ts'
import type { Peer, Place } from './peer.ts'
import { type Measured, Report, type Results, type Run } from './report.ts'
import type { Scenario, Trial, Variant } from './scenario.ts'
import { targets } from './targets.ts'
import { loadPeer, type Values } from './worker.ts'

const SCENARIOS = [
  ...['pairs', 'names', 'handoffs', 'crowd', 'renewals', 'faults', 'cold-start', 'fences', 'handover', 'observers'],
  ...['permits', 'sets', 'views'],
  ...['redlock-pairs', 'redlock-handoffs', 'redlock-handover', 'redlock-stopped'],
]

const HELP = `./script/bench [--quick] [--only SCENARIO]… [--peer NAME]… [--rounds N] [--out FOLDER] [--baseline BUILD]
  --quick      one short round of few peers, at most two minutes; shows that everything runs, not how fast
  --only       ${SCENARIOS.join(', ')}
  --peer       a file of bench/peers without .ts
  --baseline   another build of Holdfast, measured as one more peer
  --keep       keep earlier figures of all other scenarios and peers
  --out        where latest.json, .md and .svg go (quick.… of --quick); default bench/results, or .tools/bench if --only
               or --peer is given without --keep
`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    peer: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string' },
    baseline: { type: 'string' },
    keep: { type: 'boolean', default: false },
    out: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

async function bench(): Promise<void> {
  if (options.help) return say(HELP)
  if (options.baseline) process.env.BENCH_BASELINE = options.baseline
  const names = globSync('*.ts', { cwd: join(import.meta.dirname, 'peers') }).map(file => basename(file, '.ts'))
  const peers = new Map<string, Peer>()
  for (const name of names.sort(floorsFirst)) peers.set(name, await loadPeer(name))
  const wanted = options.only.length > 0 ? options.only : SCENARIOS
  for (const name of wanted)
    if (!SCENARIOS.includes(name)) throw new Error(`there is no scenario ${name}, only ${SCENARIOS.join(', ')}`)
  const out = options.out ?? join(import.meta.dirname, isPart() ? '../.tools/bench' : 'results')
  const path = join(out, options.quick ? 'quick' : 'latest')
  const isKept = ({ scenario, peer }: Measured): boolean => !wanted.includes(scenario) || !isWanted(peer)
  const before = options.keep && existsSync(`${path}.json`) && resultsAt(path)
  const measured = before ? before.measured.filter(isKept) : []
  const run = await thisRun()
  const key = `${run.date} ${run.commit}`
  const scenarios = new Map<string, Scenario>()
  const labels = Object.fromEntries(Array.from(peers, ([name, { label }]) => [name, label]))
  const overs = Object.fromEntries(Array.from(peers, ([name, { over }]) => [name, over]))
  const floors = Object.fromEntries(
    Array.from(peers, ([name, peer]) => [name, floorOf(peer, peers)]).filter(([, is]) => is),
  )
  const order = [...peers.keys()]
  const write = (): string => {
    measured.sort((a, b) => order.indexOf(a.peer) - order.indexOf(b.peer))
    const runs = { ...(before && runsOf(measured, before)), [key]: run }
    const report = new Report({ runs, isQuick: options.quick, labels, overs, floors, measured })
    const text = [
      describe(report.results),
      ...Array.from(scenarios)
        .filter(([name]) => report.variants(name).length > 0)
        .map(([name, scenario]) => report.markdown(name, scenario)),
      targets(report),
    ].join('\n')
    writeFileSync(`${path}.json`, jsonOf(report.results))
    writeFileSync(`${path}.md`, text)
    writeFileSync(`${path}.svg`, chart(report))
    return text
  }
  for (const name of SCENARIOS) {
    const { scenario } = (await import(`./scenarios/${name}.ts`)) as { scenario: Scenario }
    scenarios.set(name, scenario)
  }
  mkdirSync(out, { recursive: true })
  const seen = new Set<string>()
  for (const [name, scenario] of scenarios) {
    if (!wanted.includes(name)) continue
    for await (const outcomes of new Rounds(name, scenario, peers, seen).measured()) {
      measured.push(...outcomes.map(outcome => ({ ...outcome, run: key })))
      write() // a run of hours that is stopped keeps what it has measured
    }
  }
  say(`\n${write()}\n${path}.json, .md, .svg\n`)
}

/** One scenario of a whole run must not replace all its results. */
function isPart(): boolean {
  return !options.keep && options.only.length + options.peer.length > 0
}

function resultsAt(path: string): Results {
  return JSON.parse(readFileSync(`${path}.json`, 'utf8')) as Results
}

/** The runs that some of these are of. */
function runsOf(measured: readonly Measured[], { runs }: Results): Results['runs'] {
  return Object.fromEntries(Object.entries(runs).filter(([key]) => measured.some(({ run }) => run === key)))
}

/** One line for each trial, with five significant digits. */
function jsonOf({ measured, ...rest }: Results): string {
  const short = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value
  const trials = measured.map(trial => JSON.stringify(trial, short))
  return `${JSON.stringify(rest, null, 1).slice(0, -2)},\n "measured": [\n${trials.join(',\n')}\n ]\n}\n`
}

const ATTEMPTS = 2

/** No trial takes half as long. Milliseconds. */
const DEADLINE = 300_000

const POSTGRES = { shared_buffers: '128MB', max_connections: 200 }

type Outcome = Omit<Measured, 'run'>

/** One scenario, in rounds, in each of which every peer has its turn. */
class Rounds {
  readonly #name: string
  readonly #scenario: Scenario
  readonly #peers: [string, Peer][]
  readonly #seen: Set<string>

  /** `seen`: the peers that were measured in each round, of any scenario. */
  constructor(name: string, scenario: Scenario, peers: ReadonlyMap<string, Peer>, seen: Set<string>) {
    this.#seen = seen
    this.#name = name
    this.#scenario = scenario
    this.#peers = [...peers].filter(([name, peer]) => isWanted(name) && fits(scenario, peer))
  }

  /** Of one round after the other. */
  async *measured(): AsyncGenerator<Outcome[]> {
    const { rounds, variants, isSideBySide } = this.#scenario
    const most = Number(options.rounds ?? (options.quick ? 1 : rounds))
    for (let round = 0; round < most; round += 1) {
      const trials = variants(options.quick).flatMap(variant =>
        this.#groups(variant, round).map(peers => () => this.#attempts(peers, variant, round)),
      )
      const found: Outcome[] = []
      if (isSideBySide) found.push(...(await Promise.all(trials.map(trial => trial()))).flat())
      else for (const trial of trials) found.push(...(await trial()))
      yield found
    }
  }

  /** Who is measured together, beginning with another one in each round. */
  #groups(variant: Variant, round: number): [string, Peer][][] {
    const fitting = this.#peers.filter(([name, peer]) => variant.takesPart?.(name, peer) ?? true)
    const all = fitting.filter(([name]) => isDue(name, round, this.#seen))
    for (const [name] of all) this.#seen.add(`${round} ${name}`)
    const first = all.length > 0 ? round % all.length : 0
    const inTurn = [...all.slice(first), ...all.slice(0, first)]
    if (!this.#scenario.measureInTurns) return inTurn.map(peer => [peer])
    return Object.values(Object.groupBy(inTurn, ([, { over }]) => over))
  }

  /** Something else on the machine may disturb one of hundreds of trials. */
  async #attempts(peers: readonly [string, Peer][], variant: Variant, round: number): Promise<Outcome[]> {
    let found: Outcome[] = []
    for (let attempt = 0; attempt < ATTEMPTS && found.length < peers.length; attempt += 1) {
      const complete = await this.#complete(peers, variant, round)
      if (complete.length > found.length) found = complete
    }
    return found
  }

  /** Of those that did not fail. */
  async #complete(peers: readonly [string, Peer][], variant: Variant, round: number): Promise<Outcome[]> {
    const outcomes = await this.#outcomes(peers, variant)
    return outcomes.flatMap((outcome, index) => {
      const [peer = ''] = peers[index] ?? []
      const log = (text: string): void => say(`${this.#name} ${variant.name} · ${peer} · ${text}\n`)
      if (outcome.status === 'rejected') {
        log(`failed: ${outcome.reason instanceof Error ? outcome.reason.stack : outcome.reason}`)
        return []
      }
      const values = outcome.value
      const shown = Object.entries(values).map(([key, value]) => `${key} ${Number(value).toPrecision(4)}`)
      log(`${shown.join(', ')} · load ${loadavg()[0]?.toFixed(1)}`)
      return [{ scenario: this.#name, variant: variant.name, peer, round, values }]
    })
  }

  async #outcomes(peers: readonly [string, Peer][], variant: Variant): Promise<PromiseSettledResult<Values>[]> {
    const { measure, measureInTurns } = this.#scenario
    const open: AsyncDisposable[] = []
    try {
      const trials: Trial[] = []
      for (const [name, peer] of peers) trials.push(await this.#trial(name, peer, variant, open))
      const late = sleep(DEADLINE, undefined, { ref: false }).then(() => {
        throw new Error(`no figures after ${DEADLINE} ms`)
      })
      const each = (): Promise<PromiseSettledResult<Values>[]> =>
        Promise.allSettled(trials.map(async trial => (await measure?.(trial)) ?? {}))
      return await Promise.race([measureInTurns?.(trials) ?? each(), late])
    } catch (reason) {
      return peers.map(() => ({ status: 'rejected', reason }))
    } finally {
      for (const resource of open.reverse())
        try {
          await resource[Symbol.asyncDispose]()
        } catch (error) {
          say(`${this.#name} ${variant.name} · ${error}\n`)
        }
    }
  }

  async #trial(name: string, peer: Peer, { settings }: Variant, open: AsyncDisposable[]): Promise<Trial> {
    const use: Trial['use'] = resource => {
      open.push(resource)
      return resource
    }
    // Servers for each trial: nothing is left of the one before.
    const servers = [use(await startRedis())] as [RedisServer, ...RedisServer[]]
    while (servers.length < (this.#scenario.servers ?? 1)) servers.push(use(await startRedis()))
    // It syncs to the disk, as it is installed.
    const postgres = peer.over === 'postgres' && use(await startPostgres({ config: POSTGRES }))
    const ports = (postgres ? [postgres] : servers).map(({ port }) => port)
    let place: Place = { host: servers[0].host, ports, folder: newFolder('bench') }
    const start: Trial['start'] = (task, at = place) =>
      use(new Worker({ peer: name, scenario: this.#name, task, place: at, settings }))
    if (peer.serve) place = { ...place, ports: [Number((await start('serve').values).port)] }
    return { name, peer, place, settings, servers, start, use }
  }
}

function isWanted(name: string): boolean {
  if (name.startsWith('baseline') && !options.baseline) return false
  return options.peer.length === 0 || options.peer.includes(name)
}

/** Left out with --quick, where one floor and one library stand for all. */
const ALIKE = /^(floor-(?!five)|redis-semaphore|redlock-universal|sesamecare|simple|redlock5-five)/

/** With --quick, only Holdfast over Redis is measured everywhere. Any other peer is measured once. */
function isDue(name: string, round: number, seen: ReadonlySet<string>): boolean {
  if (!options.quick || options.peer.length > 0 || name === 'holdfast' || name === 'holdfast-five') return true
  return !ALIKE.test(name) && !seen.has(`${round} ${name}`)
}

function fits(scenario: Scenario, peer: Peer): boolean {
  const isOverSeveral = scenario.servers !== undefined && scenario.servers > 1
  return isOverSeveral === (peer.over === 'redlock') && scenario.takesPart(peer)
}

function floorsFirst(a: string, b: string): number {
  const rank = (name: string): number => (name.startsWith('floor') ? 0 : name.startsWith('holdfast') ? 1 : 2)
  return rank(a) - rank(b) || a.localeCompare(b)
}

function floorOf(peer: Peer, peers: ReadonlyMap<string, Peer>): string {
  for (const [name, other] of peers) if (other.isFloor && other.over === peer.over) return name
  return ''
}

async function thisRun(): Promise<Run> {
  const redis = await startRedis()
  const { redis_version } = await redis.info('server')
  await redis.stop()
  const manifest = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'))
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit('bench/results'),
    cpu: cpus()[0]?.model ?? '?',
    cores: cpus().length,
    system: `${process.platform} ${release()}`,
    node: process.version,
    redis: redis_version ?? '?',
    ioredis: manifest.dependencies.ioredis,
    load: loadavg()[0]?.toFixed(2) ?? '?',
  }
}

function describe({ isQuick }: Results): string {
  const caution = isQuick ? ' One short round: it shows that everything runs, the figures tell little.' : ''
  return `By \`./script/bench\`: [what it measures](../README.md). Medians of up to three rounds, and in brackets their range. Ratios are taken within a round. *Floor*: the plain commands that a lock needs. **Holdfast** alone: over Redis, or over Redlock. *Jain*: 1 if all are served equally often.${caution}\n`
}

function say(text: string): void {
  process.stdout.write(text)
}

await bench()
