import { execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { ENGINES } from '../../lab/engines/index.ts'
import { type Outcome, table, type Verdict } from '../../lab/prove/verdict.ts'
import { parseDuration } from '../../src/cli/duration.ts'
import { FOLDER, keep, proofOf } from './results.ts'

const ROOT = join(import.meta.dirname, '../..')
const LONG = '30m'
/** Milliseconds between two lines of progress. */
const SELDOM = 60_000
/** Of an engine, in milliseconds: less shows nothing. */
const SHORTEST = 10_000
const HIGHEST_SEED = 999_999_999
/** As they are by default, so that the command line goes on to mean the same. */
const SETTINGS = ['--clients', '5', '--names', '3', '--ttl', '1s']

const HELP = `./script/prove [--engine NAME]… [--programme usual|all]… [--for 30m] [--seed N] [--keep] [--out FOLDER]
Each engine of the fault lab for half an hour: half of it with its usual faults, half with all but servers that
forget, since forgetting while clocks jump is more than is promised.
  --engine     ${Object.keys(ENGINES).join(', ')}
  --programme  one half only
  --for        the time of each engine; what is shorter than ${LONG} is only shown, unless --keep is given
  --seed       of the first run; the others follow from it
  --keep       keep what is shorter too
  --out        where results.json and README.md are kept (default: docs/proof); several may write there at once
The exit code is 0 if all passed. The event log and the page of a run that did not pass stay in .tools/proof.
`

const OPTIONS = {
  engine: { type: 'string', multiple: true, default: Object.keys(ENGINES) },
  programme: { type: 'string', multiple: true, default: ['usual', 'all'] as string[] },
  for: { type: 'string', default: LONG },
  seed: { type: 'string', default: String(randomInt(HIGHEST_SEED)) },
  keep: { type: 'boolean', default: false },
  out: { type: 'string', default: FOLDER },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** What goes wrong together. */
interface Programme {
  readonly engine: string
  readonly programme: string
  readonly seed: number
  readonly faults: readonly string[]
}

const over = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => over.abort(signal))

try {
  process.exitCode = await prove()
} catch (error) {
  process.stderr.write(`script/prove: ${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 64
}

async function prove(): Promise<number> {
  const { values: options } = parseArgs({ options: OPTIONS })
  if (options.help) {
    say(HELP)
    return 0
  }
  const known = Object.keys(ENGINES)
  for (const name of options.engine)
    if (!known.includes(name)) throw new Error(`there is no engine ${name}, only ${known.join(', ')}`)
  if (!/^\d{1,9}$/.test(options.seed))
    throw new Error(`--seed ${options.seed}: expected a whole number of 9 digits at most`)
  const each = parseDuration(options.for, '--for')
  if (each < SHORTEST) throw new Error(`--for ${options.for}: expected ${SHORTEST / 1_000}s or more`)
  const about = { commit: commit(), machine: machine() }
  const keeps = options.keep || each >= parseDuration(LONG, '--for')
  // Rather now than after hours.
  if (keeps) mkdirSync(options.out, { recursive: true })
  const outcomes: [string, Outcome | 'failed'][] = []
  const programmes = options.engine
    .flatMap(name => programmesOf(name, Number(options.seed)))
    .filter(({ programme }) => options.programme.includes(programme))
  if (programmes.length === 0) throw new Error(`--programme ${options.programme}: expected usual or all`)
  for (const { engine, programme, seed, faults } of programmes) {
    if (over.signal.aborted) break
    const args = ['--lab', engine, '--seed', String(seed), '--duration', `${Math.round(each / 2)}ms`]
    args.push(...SETTINGS, '--faults', faults.join(','))
    const command = `holdfast prove ${args.join(' ')}`
    say(`${engine}, ${programme}: ${command}`)
    const verdict = await verdictOf(args, `${engine}-${programme}-${seed}`)
    if (over.signal.aborted) break
    outcomes.push([`${engine}, ${programme}`, verdict?.outcome ?? 'failed'])
    if (!verdict) continue
    say(table(verdict))
    if (keeps) await keep(proofOf(verdict, { programme, command, ...about }), resolve(options.out))
  }
  say(['', ...outcomes.map(([what, outcome]) => `${outcome.padEnd(14)}${what}`)].join('\n'))
  if (keeps && outcomes.length > 0) say(`kept in ${resolve(options.out)}; now npm run guarantees`)
  if (over.signal.aborted) return 130
  return outcomes.every(([, outcome]) => outcome === 'passed') ? 0 : 1
}

function programmesOf(engine: string, seed: number): Programme[] {
  const { faults = [], others = [] } = ENGINES[engine] ?? {}
  const first = seed + 2 * Object.keys(ENGINES).indexOf(engine)
  const all = [...faults, ...others].filter(fault => fault !== 'server-forget')
  return [
    { engine, programme: 'usual', seed: first, faults },
    { engine, programme: 'all', seed: first + 1, faults: all },
  ]
}

/** Runs it; `undefined` if there was none, for a reason that was said. */
async function verdictOf(args: readonly string[], name: string): Promise<Verdict | undefined> {
  const folder = join(ROOT, '.tools/proof')
  mkdirSync(folder, { recursive: true })
  const files = ['jsonl', 'html'].map(type => join(folder, `${name}.${type}`))
  const [events = '', report = ''] = files
  const remove = (): void => {
    for (const file of files) rmSync(file, { force: true })
  }
  remove()
  const command = ['prove', ...args, '--json', '--events', events, '--report', report]
  const child = spawn(join(ROOT, 'script/holdfast'), command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = (): boolean => child.kill('SIGINT')
  over.signal.addEventListener('abort', stop)
  const told = tell(createInterface({ input: child.stderr }))
  const [out] = await Promise.all([text(child.stdout), told])
  over.signal.removeEventListener('abort', stop)
  const verdict = out === '' ? undefined : (JSON.parse(out) as Verdict)
  if (over.signal.aborted || verdict?.outcome === 'passed') remove()
  else say(`its event log, and its page if it was judged: ${events}, ${report}`)
  return verdict
}

/** What it says meanwhile: seldom how far it is, always all else. */
async function tell(lines: AsyncIterable<string>): Promise<void> {
  let next = 0
  for await (const line of lines) {
    const { event, message, elapsed = 0, error } = parse(line)
    if (event === 'progress' && elapsed < next) continue
    if (event === 'progress') next = elapsed + SELDOM - 1_000
    if (event !== 'seed') say(`  ${error?.message ?? message}`)
  }
}

interface Line {
  readonly event?: string
  readonly message?: string
  readonly elapsed?: number
  readonly error?: { readonly message: string }
}

function parse(line: string): Line {
  try {
    return JSON.parse(line) as Line
  } catch {
    return { message: line }
  }
}

function commit(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const isChanged = git('status', '--porcelain', '--', '.', ':!docs/proof') !== ''
  return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' with changes' : '')
}

function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores, ${process.platform}`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
