import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { ENGINES } from '../../lab/engines/index.ts'
import type { Outcome, Verdict } from '../../lab/judge/verdict.ts'
import { table } from '../../lab/report/table.ts'
import { parseDuration } from '../../src/cli/duration.ts'
import { commit } from '../commit.ts'
import { environmentOf, FUZZ, fuzzEnvironmentOf, playHistories, testOf } from './differential.ts'
import { argumentsOf, commandOf, DURATION, PROGRAMMES } from './programme.ts'
import { addProof, FOLDER, proofOf } from './results.ts'
import { sourcesOf } from './sources.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Of `usual` and `all` together. */
const LONG = `${(2 * DURATION) / 60_000}m`
/** Milliseconds between two lines of progress. */
const PROGRESS_INTERVAL = 60_000
/** The shortest time of an engine, in milliseconds. Less shows nothing. */
const SHORTEST = 10_000
const HIGHEST_SEED = 999_999_999

/** Not in the fault lab: answers of the engine are compared with those of the rules of a name. */
const DIFFERENTIAL = 'differential'

const HELP = `./script/prove [--engine NAME]… [--programme usual|all|sharing|differential]… [--for 30m] [--seed N] [--keep]
               [--out FOLDER] [--histories FOLDER]
./script/prove (--fuzz ENGINE)… [--for 10m] [--seed N]
Runs each engine in the fault lab: half of the time with its default faults (usual), half with all faults but
server-forget (all), because no engine promises to tolerate lost memory while clocks jump. Then half of the time again
with permits, readers and writers, and its default faults (sharing). Then, without faults, half of the time random
requests, whose answers are compared with the rules of a name (differential), where the engine knows limits and slots.
With --fuzz: only random requests, while networks fail and servers pause, over each engine for the time of --for. If an
answer breaks the rules of a name, the run fails and its seed goes to test/differential/seeds.json; ./script/test --full
plays it again, with other faults.
  --engine     ${Object.keys(ENGINES).join(', ')} (default: all)
  --programme  only usual, all, sharing or differential (default: all four)
  --for        the time of usual and all together, at least 10s (default: ${LONG}); results of shorter runs are not stored
  --seed       the seed of the first run, up to 9 digits (default: random); the other seeds follow from it
  --keep       stores the results of runs shorter than ${LONG}, too (default: off)
  --out        the folder for results.json and README.md (default: docs/proof); several runs can share it
  --histories  a folder for the events of each run, compressed; holdfast prove --judge FILE judges them again
The exit code is 0 if all runs passed. The event logs and pages of the other runs are in .tools/proof.
`

const OPTIONS = {
  engine: { type: 'string', multiple: true, default: Object.keys(ENGINES) },
  programme: { type: 'string', multiple: true, default: [...PROGRAMMES, DIFFERENTIAL] as string[] },
  fuzz: { type: 'string', multiple: true, default: [] as string[] },
  for: { type: 'string', default: LONG },
  seed: { type: 'string', default: String(randomInt(HIGHEST_SEED)) },
  keep: { type: 'boolean', default: false },
  out: { type: 'string', default: FOLDER },
  histories: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort(signal))

try {
  process.exitCode = await prove()
} catch (error) {
  process.stderr.write(`script/prove: ${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 64
}

async function prove(): Promise<number> {
  const { values: options } = parseArgs({ options: OPTIONS })
  if (options.help) {
    print(HELP)
    return 0
  }
  const known = Object.keys(ENGINES)
  for (const name of [...options.engine, ...options.fuzz])
    if (!known.includes(name)) throw new Error(`engine ${name} is unknown: expected ${known.join(', ')}`)
  for (const name of options.programme)
    if (name !== DIFFERENTIAL && !PROGRAMMES.includes(name))
      throw new Error(`--programme ${name} is unknown: expected ${[...PROGRAMMES, DIFFERENTIAL].join(', ')}`)
  if (!/^\d{1,9}$/.test(options.seed))
    throw new Error(`--seed ${options.seed}: expected a whole number of at most 9 digits`)
  const each = parseDuration(options.for, '--for')
  if (each < SHORTEST) throw new Error(`--for ${options.for}: expected ${SHORTEST / 1_000}s or more`)
  if (options.fuzz.length > 0) return fuzz(options.fuzz, each, Number(options.seed))
  const isStored = options.keep || each >= 2 * DURATION
  // Fails now, not after hours.
  for (const folder of [isStored ? options.out : undefined, options.histories])
    if (folder !== undefined) mkdirSync(folder, { recursive: true })
  const outcomes: [string, Outcome | 'failed'][] = []
  const runs = options.engine.flatMap(engine =>
    PROGRAMMES.filter(programme => options.programme.includes(programme)).map(programme => ({ engine, programme })),
  )
  for (const { engine, programme } of runs) {
    if (interrupted.signal.aborted) break
    const seed = Number(options.seed) + 2 * known.indexOf(engine) + (programme === 'all' ? 1 : 0)
    const args = argumentsOf(engine, programme, seed, each / 2)
    const command = commandOf(args)
    print(`${engine}, ${programme}: ${command}`)
    const about = { commit: commit('docs/proof'), sources: sourcesOf(engine), machine: machine() }
    if (isStored && resolve(options.out) === FOLDER && about.commit.endsWith('changes'))
      throw new Error('commit or stash your changes first: the page names the commit with which a run can be repeated')
    const verdict = await verdictOf(args, `${engine}-${programme}-${seed}`, options.histories)
    if (interrupted.signal.aborted) break
    outcomes.push([`${engine}, ${programme}`, verdict?.outcome ?? 'failed'])
    if (!verdict) continue
    print(table(verdict))
    if (!isStored) continue
    // Clients that were killed have loaded the sources again.
    if (sourcesOf(engine) !== about.sources)
      throw new Error(`the sources of ${engine} changed while it ran, so its result is not stored: run it again`)
    await addProof(proofOf(verdict, { programme, command, ...about }), resolve(options.out))
  }
  for (const engine of options.programme.includes(DIFFERENTIAL) ? options.engine : []) {
    const test = testOf(engine)
    if (!test || interrupted.signal.aborted) continue
    const seed = Number(options.seed)
    const environment = Object.entries(environmentOf(each / 2, seed)).map(([name, value]) => `${name}=${value}`)
    print(`${engine}, ${DIFFERENTIAL}: ${environment.join(' ')} npx vitest run ${test}`)
    const isRight = await playHistories(test, environmentOf(each / 2, seed), interrupted.signal)
    if (!interrupted.signal.aborted) outcomes.push([`${engine}, ${DIFFERENTIAL}`, isRight ? 'passed' : 'failed'])
  }
  print(['', ...outcomes.map(([what, outcome]) => `${outcome.padEnd(14)}${what}`)].join('\n'))
  if (isStored && outcomes.some(([what]) => !what.endsWith(DIFFERENTIAL)))
    print(`stored in ${resolve(options.out)}; now run: npm run generate`)
  if (interrupted.signal.aborted) return 130
  if (outcomes.length === 0) throw new Error(`${options.engine.join(', ')}: no differential test, so nothing ran`)
  return outcomes.every(([, outcome]) => outcome === 'passed') ? 0 : 1
}

/** Random requests while faults happen. Returns the exit code. */
async function fuzz(engines: readonly string[], ms: number, seed: number): Promise<number> {
  const tests = engines.map((engine): [engine: string, test: string] => {
    const test = testOf(engine)
    if (!test) throw new Error(`--fuzz ${engine}: it has no differential test`)
    return [engine, test]
  })
  let isRight = true
  for (const [engine, test] of tests) {
    print(`${engine}, random requests with faults, seed ${seed}`)
    isRight = (await playHistories(test, fuzzEnvironmentOf(ms, seed), interrupted.signal, ['-t', FUZZ])) && isRight
    if (interrupted.signal.aborted) return 130
  }
  return isRight ? 0 : 1
}

/** Runs `holdfast prove`. `undefined` if it failed; then its error was printed. */
async function verdictOf(
  args: readonly string[],
  name: string,
  histories: string | undefined,
): Promise<Verdict | undefined> {
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
  interrupted.signal.addEventListener('abort', stop)
  const printed = printMessages(createInterface({ input: child.stderr }))
  const [out] = await Promise.all([text(child.stdout), printed])
  interrupted.signal.removeEventListener('abort', stop)
  const verdict = out === '' ? undefined : (JSON.parse(out) as Verdict)
  if (verdict && histories !== undefined)
    writeFileSync(join(histories, `${name}.jsonl.gz`), gzipSync(readFileSync(events)))
  if (interrupted.signal.aborted || verdict?.outcome === 'passed') remove()
  else print(`event log: ${events}; page, if there was a verdict: ${report}`)
  return verdict
}

/** Prints the messages of a run, but progress only once a minute. */
async function printMessages(lines: AsyncIterable<string>): Promise<void> {
  let next = 0
  for await (const line of lines) {
    const { event, message, elapsed = 0, error } = parse(line)
    if (event === 'progress' && elapsed < next) continue
    if (event === 'progress') next = elapsed + PROGRESS_INTERVAL - 1_000
    if (event !== 'seed') print(`  ${error?.message ?? message}`)
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

function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores, ${process.platform}`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
