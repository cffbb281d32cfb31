import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Engine } from '../engines/engine.ts'
import { externalServers } from '../engines/external.ts'
import { ENGINES } from '../engines/index.ts'
import { FAULTS } from '../faults/fault.ts'
import { judge } from '../judge/checker.ts'
import { readHistory } from '../judge/history.ts'
import type { Outcome, Verdict } from '../judge/verdict.ts'
import { page } from '../report/page.ts'
import { table } from '../report/table.ts'
import { sharedOf } from '../run/job.ts'
import { type Progress, run } from '../run/run.ts'
import { newFolder } from '../servers/folder.ts'
import type { CommandLine, Output } from './command-line.ts'
import { type JudgeOptions, type ProveOptions, parseProve } from './options.ts'

const EXITS: Readonly<Record<Outcome, number>> = { passed: 0, violated: 1, inconclusive: 2 }

/** Milliseconds between two lines of progress that go to a file or pipe. */
const PROGRESS_INTERVAL = 10_000

/** On external servers: the shortest pause of a client between two leases of a name, in milliseconds. */
const PACE = 250

/** How many permits there are of a shared name. The five clients of a usual run have to wait for them. */
const LIMIT = 2

/** `holdfast prove`: injects faults and reports which promises were kept. Returns the exit code. */
export async function prove(args: readonly string[], commandLine: CommandLine): Promise<number> {
  const options = parseProve(args, commandLine)
  const output = new commandLine.Output(options)
  if ('judge' in options) return judgeAgain(options, output, commandLine)
  const stop = commandLine.stopSignal('before the run was over')
  const folder = newFolder('prove')
  try {
    const history = options.events ?? join(folder, 'events.jsonl')
    const names = namesOf(options)
    const engine = await startEngine(options, names, output, commandLine)
    try {
      stop.throwIfAborted()
      const { seed, duration, ttl, clients, faults, fence, sharing } = options
      const wrong = faults.join(', ') || 'none'
      output.info('seed', `seed ${seed}, for ${commandLine.formatDuration(duration)}, faults: ${wrong}`, {
        seed,
        faults,
      })
      const pace = 'store' in options.subject ? PACE : 0
      const onProgress = progressTo(output, commandLine)
      const shared = sharing ? sharedOf(names, LIMIT, !engine.lacksReaders) : undefined
      const about = { seed, duration, ttl, clients, names, shared, faults, fence, pace }
      await run({ engine, ...about, history, signal: stop, onProgress })
      stop.throwIfAborted()
    } finally {
      await engine[Symbol.asyncDispose]()
    }
    return report(options, history, output, commandLine)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Judges the history and shows the verdict. */
function report(options: ProveOptions, history: string, output: Output, { paint, mask }: CommandLine): number {
  const events = readHistory(history)
  const verdict = judge(events, undefined, { excuses: !options.known })
  const replay = mask(replayOf(options))
  if (options.report) writeFileSync(options.report, page(events, verdict, replay))
  output.print(verdict, `${table(verdict, paint)}\n\n${paint('dim', replay)}`)
  return options.known ? reportKnown(verdict, options, output) : EXITS[verdict.outcome]
}

/** Judges the history of an earlier run as that run did, unless it was one of `--known-violation`. */
function judgeAgain({ judge: history, report: file }: JudgeOptions, output: Output, { paint }: CommandLine): number {
  const events = readHistory(history)
  const verdict = judge(events)
  if (file) writeFileSync(file, page(events, verdict, `holdfast prove --judge ${basename(history)}`))
  output.print(verdict, table(verdict, paint))
  return EXITS[verdict.outcome]
}

/** A known violation is shown if two clients believed to hold a name and no other promise was broken. */
function reportKnown({ rows }: Verdict, { subject }: ProveOptions, output: Output): number {
  const broken = rows.filter(({ outcome }) => outcome === 'violated').map(({ promise }) => promise)
  if (broken.some(promise => promise !== 'notified' && promise !== 'answers')) return EXITS.violated
  const what = 'lab' in subject ? ENGINES[subject.lab]?.known.what : ''
  const isShown = broken.length > 0
  // Only a refused write shows that the fence held.
  const fenced = rows.some(({ promise, outcome }) => promise === 'safety' && outcome === 'passed')
  const end = fenced ? 'shown, and the fence held' : 'shown, but with too few late writes to test the fence'
  output.info('known', `${isShown ? end : 'not shown this time'}: ${what}`, { shown: isShown, fenced })
  return isShown ? 0 : EXITS.inconclusive
}

async function startEngine(
  { subject, ttl, faults, clients, duration }: ProveOptions,
  names: readonly string[],
  output: Output,
  commandLine: CommandLine,
): Promise<Engine> {
  if ('lab' in subject) {
    const { lab } = subject
    output.info('starting', `starting ${ENGINES[lab]?.what}`)
    const start = await ENGINES[lab]?.load()
    if (!start) throw new Error(`there is no engine ${lab}`)
    return start({ ttl, clocks: faults.some(fault => FAULTS[fault]?.group === 'clock') })
  }
  const url = commandLine.storeUrl(subject.store, output)
  const rate = Math.ceil((clients * names.length * 1_000) / PACE)
  output.warn(
    'external',
    `${clients} processes compete for ${commandLine.counted(names.length, 'name')} (${names[0]} …) for ${commandLine.formatDuration(duration)}, ` +
      `up to ${commandLine.counted(rate, 'lease')} a second. Faults hit only these processes and their connections, not the servers and not ` +
      'other names. The names are removed at the end.',
    { names },
  )
  return externalServers(url, { names, ttl, forget: commandLine.forgetNames })
}

/** On external servers the names differ from all others. */
function namesOf({ subject, names }: ProveOptions): string[] {
  const prefix = 'store' in subject ? `holdfast-prove-${randomBytes(4).toString('hex')}-` : 'name-'
  return Array.from({ length: names }, (_, index) => `${prefix}${index + 1}`)
}

function progressTo(output: Output, { counted, formatDuration }: CommandLine): (progress: Progress) => void {
  let last = { elapsed: 0, granted: 0 }
  return ({ elapsed, counts }) => {
    if (elapsed - last.elapsed < (process.stderr.isTTY ? 1_000 : PROGRESS_INTERVAL)) return
    const { granted = 0, fault = 0, lost = 0, rejected = 0 } = counts
    const rate = ((granted - last.granted) / (elapsed - last.elapsed)) * 1_000
    last = { elapsed, granted }
    const text = `${formatDuration(elapsed)}: ${counted(fault, 'fault')}, ${rate.toFixed(1)} grants/s, ${counted(lost, 'loss', 'losses')} reported, ${counted(rejected, 'write')} refused`
    output.info('progress', text, { elapsed, counts })
  }
}

/** The command line that repeats this run. */
function replayOf(options: ProveOptions): string {
  const { subject, seed, duration, clients, names, ttl, faults, fence, known, sharing } = options
  const what = 'lab' in subject ? `--lab ${subject.lab}` : `--store ${subject.store}`
  const times = `--duration ${duration}ms --ttl ${ttl}ms`
  const wrong = known ? '--known-violation' : `--faults ${faults.join(',') || 'none'}`
  const how = `--seed ${seed} ${times} --clients ${clients} --names ${names} ${wrong}`
  return `holdfast prove ${what} ${how}${sharing ? ' --sharing' : ''}${fence ? '' : ' --no-fence'}`
}
