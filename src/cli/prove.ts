import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine } from '../../lab/engine.ts'
import { ENGINES } from '../../lab/engines/index.ts'
import { judge } from '../../lab/prove/checker.ts'
import { FAULTS } from '../../lab/prove/fault.ts'
import { readHistory } from '../../lab/prove/history.ts'
import { report } from '../../lab/prove/report.ts'
import { type Progress, type RunOptions, run } from '../../lab/prove/run.ts'
import { type Outcome, table, type Verdict } from '../../lab/prove/verdict.ts'
import { yours } from '../../lab/prove/yours.ts'
import { newFolder } from '../../lab/servers/folder.ts'
import { formatDuration } from './duration.ts'
import { EXIT, Failure } from './failure.ts'
import { mask, Output, paint } from './output.ts'
import { type ProveOptions, parseProve } from './prove-options.ts'
import { Signals } from './signals.ts'
import { storeUrl } from './where.ts'

/** Milliseconds between two lines of progress where lines stay. */
const SELDOM = 10_000
const EXITS: Readonly<Record<Outcome, number>> = {
  passed: 0,
  violated: EXIT.violated,
  inconclusive: EXIT.inconclusive,
}

/** Milliseconds that a client of somebody's servers rests between two leases of a name. */
const PACE = 250

/** `holdfast prove`: lets things go wrong, and shows what became of the promises. Answers the exit code. */
export async function prove(args: readonly string[]): Promise<number> {
  const options = parseProve(args)
  if (process.platform !== 'linux')
    throw new Failure(EXIT.unavailable, 'UNSUPPORTED', 'holdfast prove looks into /proc: it runs on Linux')
  const output = new Output(options)
  const { stop } = new Signals('before the run was over')
  const folder = newFolder('prove')
  try {
    const history = options.events ?? join(folder, 'events.jsonl')
    const names = namesOf(options)
    const engine = await engineOf(options, names, output)
    try {
      return await proveOf(engine, options, { names, history }, output, stop)
    } finally {
      await engine[Symbol.asyncDispose]()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function proveOf(
  engine: Engine,
  options: ProveOptions,
  { names, history }: Pick<RunOptions, 'names' | 'history'>,
  output: Output,
  stop: AbortSignal,
): Promise<number> {
  stop.throwIfAborted()
  const { seed, duration, ttl, clients, faults, fence } = options
  output.tell('seed', `seed ${seed}, for ${formatDuration(duration)}: ${faults.join(', ') || 'nothing'} goes wrong`, {
    seed,
    faults,
  })
  const onProgress = progressOn(output)
  await run({
    engine,
    seed,
    duration,
    ttl,
    clients,
    names,
    faults,
    fence,
    pace: 'store' in options.subject ? PACE : 0,
    history,
    signal: stop,
    onProgress,
  })
  stop.throwIfAborted()
  const events = readHistory(history)
  const verdict = judge(events, undefined, { excuses: !options.known })
  if (options.report) writeFileSync(options.report, report(events, verdict, replay(options)))
  output.print(verdict, `${table(verdict, paint)}\n\n${paint('dim', replay(options))}`)
  return options.known ? shown(verdict, options, output) : EXITS[verdict.outcome]
}

/** Of a violation that is known: two believed to hold, and nothing else is broken. */
function shown({ rows }: Verdict, { subject }: ProveOptions, output: Output): number {
  const broken = rows.filter(({ outcome }) => outcome === 'violated').map(({ promise }) => promise)
  const what = 'lab' in subject ? ENGINES[subject.lab]?.known.what : ''
  const others = broken.filter(promise => promise !== 'told')
  if (others.length > 0) return EXITS.violated
  const isShown = broken.includes('told')
  // Only a write that was refused shows that the fence held.
  const fenced = rows.some(({ promise, outcome }) => promise === 'safety' && outcome === 'passed')
  const end = fenced ? 'shown, and the fence held' : 'shown, though too few late writes came to show the fence'
  output.tell('known', `${isShown ? end : 'not shown this time'}: ${what}`, { shown: isShown, fenced })
  return isShown ? 0 : EXIT.inconclusive
}

/** What is started, or taken as it is. */
async function engineOf(options: ProveOptions, names: readonly string[], output: Output): Promise<Engine> {
  const { subject, ttl, faults } = options
  if ('lab' in subject) {
    output.tell('starting', `starting ${ENGINES[subject.lab]?.what}`)
    const start = await ENGINES[subject.lab]?.load()
    if (start) return start({ ttl, clocks: faults.some(fault => FAULTS[fault]?.group === 'clock') })
  }
  const url = storeUrl('store' in subject ? subject.store : undefined, output)
  const { clients, duration } = options
  output.warn(
    'yours',
    `${clients} processes compete for ${names.length} names, ${names[0]} and so on, for ${formatDuration(duration)}: at most ` +
      `${Math.ceil((clients * names.length * 1_000) / PACE)} leases a second. They are stopped and killed, and their ways ` +
      'to the servers cut; the servers and other names are left alone, and the names removed in the end',
    { names },
  )
  return yours(url, names, ttl)
}

/** In a store of somebody's the names are told from all others. */
function namesOf({ subject, names }: ProveOptions): string[] {
  const prefix = 'store' in subject ? `holdfast-prove-${randomBytes(4).toString('hex')}-` : 'name-'
  return Array.from({ length: names }, (_, index) => `${prefix}${index + 1}`)
}

function progressOn(output: Output): (progress: Progress) => void {
  let last = { elapsed: 0, granted: 0 }
  return ({ elapsed, counts }) => {
    if (elapsed - last.elapsed < (process.stderr.isTTY ? 1_000 : SELDOM)) return
    const { granted = 0, fault = 0, lost = 0, rejected = 0 } = counts
    const rate = ((granted - last.granted) / (elapsed - last.elapsed)) * 1_000
    last = { elapsed, granted }
    const text = `${formatDuration(elapsed)}: ${fault} faults, ${rate.toFixed(1)} grants/s, ${lost} losses reported, ${rejected} writes refused`
    output.tell('progress', text, { elapsed, counts })
  }
}

/** The command line that lets the same go wrong again. */
function replay({ subject, seed, duration, clients, names, ttl, faults, fence, known }: ProveOptions): string {
  const what = 'lab' in subject ? `--lab ${subject.lab}` : `--store ${mask(subject.store)}`
  const times = `--duration ${duration}ms --ttl ${ttl}ms`
  const wrong = known ? '--known-violation' : `--faults ${faults.join(',') || 'none'}`
  const how = `--seed ${seed} ${times} --clients ${clients} --names ${names} ${wrong}`
  return `holdfast prove ${what} ${how}${fence ? '' : ' --no-fence'}`
}
