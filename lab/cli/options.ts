import { randomInt } from 'node:crypto'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ENGINES, type LabEngine } from '../engines/index.ts'
import { FAULTS } from '../faults/fault.ts'
import type { CommandLine } from './command-line.ts'

/** The options of `holdfast prove`. Durations are milliseconds. */
export interface ProveOptions {
  /** An engine that the lab starts, or the URL of external servers. */
  readonly subject: { readonly lab: string } | { readonly store: string }
  readonly faults: readonly string[]
  readonly duration: number
  readonly ttl: number
  readonly seed: number
  readonly clients: number
  readonly names: number
  readonly fence: boolean
  /** Compete for permits, and as readers and writers. */
  readonly sharing: boolean
  /** Show the known violation of the engine. */
  readonly known: boolean
  /** The file for the history. */
  readonly events: string | undefined
  /** The file for the page. */
  readonly report: string | undefined
  readonly json: boolean | undefined
  readonly quiet: boolean | undefined
}

/** The options of `holdfast prove --judge`. */
export interface JudgeOptions extends Pick<ProveOptions, 'report' | 'json' | 'quiet'> {
  /** The file with the history of an earlier run. */
  readonly judge: string
}

const OPTIONS = {
  judge: { type: 'string' },
  store: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean', short: 'q' },
  lab: { type: 'string' },
  faults: { type: 'string' },
  duration: { type: 'string' },
  ttl: { type: 'string' },
  seed: { type: 'string' },
  clients: { type: 'string' },
  names: { type: 'string' },
  'no-fence': { type: 'boolean' },
  sharing: { type: 'boolean' },
  'known-violation': { type: 'boolean' },
  events: { type: 'string' },
  report: { type: 'string' },
} as const

const HIGHEST_SEED = 2 ** 32 - 1
/** The largest run, of the lab and on external servers. */
const LAB_LIMITS = { duration: 86_400_000, clients: 64, names: 64 } as const
const EXTERNAL_LIMITS = { duration: 600_000, clients: 8, names: 4 } as const

/** The parts of the command line that reading options needs. */
type Reader = Pick<CommandLine, 'parse' | 'parseDuration' | 'seeHelp' | 'suggest' | 'Usage'>

const WITH_JUDGE = new Set(['judge', 'report', 'json', 'quiet'])

/** Reads the options. Throws `Usage`. */
export function parseProve(args: readonly string[], reader: Reader): ProveOptions | JudgeOptions {
  const { parse, parseDuration, seeHelp, Usage } = reader
  const { values, positionals } = parse('prove', [...args], OPTIONS)
  if (positionals.length > 0)
    throw new Usage(`prove takes options only, no argument such as ${positionals[0]}; ${seeHelp('prove')}`)
  if (values.judge !== undefined) {
    const other = Object.keys(values).find(option => !WITH_JUDGE.has(option))
    if (other !== undefined) throw new Usage(`--judge runs nothing: remove --${other}; ${seeHelp('prove')}`)
    const { judge, json, quiet } = values
    return { judge: readable(judge, reader), report: writable(values.report, '--report', reader), json, quiet }
  }
  const subject = subjectOf(values.lab, values.store, reader)
  const most = 'store' in subject ? EXTERNAL_LIMITS : LAB_LIMITS
  const isKnown = values['known-violation'] === true
  const known = isKnown ? knownOf(subject, values.faults, reader) : undefined
  const isSharing = values.sharing === true
  if (isSharing && 'store' in subject)
    throw new Usage('--sharing runs on servers of its own: it needs --lab, not --store')
  if (isSharing && isKnown) throw new Usage('--known-violation is about leases: remove --sharing')
  const ttl = parseDuration(values.ttl ?? `${known?.ttl ?? 1_000}ms`, '--ttl')
  if (ttl < 500 || ttl > 60_000) throw new Usage(`--ttl ${values.ttl}: expected from 500ms to 60s`)
  const duration = parseDuration(values.duration ?? '30s', '--duration')
  if (duration < 3 * ttl || duration > most.duration) {
    const given = values.duration ?? '30s'
    throw new Usage(`--duration ${given}: expected from 3 ttls (${3 * ttl}ms) to ${most.duration / 60_000}m`)
  }
  return {
    subject,
    faults: known?.faults ?? faultsOf(subject, values.faults, reader),
    known: isKnown,
    duration,
    ttl,
    seed:
      values.seed === undefined
        ? randomInt(HIGHEST_SEED + 1)
        : number(values.seed, '--seed', [0, HIGHEST_SEED], reader),
    clients: number(values.clients ?? '5', '--clients', [2, most.clients], reader),
    names: number(values.names ?? String(known?.names ?? 3), '--names', [1, most.names], reader),
    fence: values['no-fence'] !== true,
    sharing: isSharing,
    events: newFile(values.events, reader),
    report: writable(values.report, '--report', reader),
    json: values.json,
    quiet: values.quiet,
  }
}

function readable(text: string, { Usage }: Reader): string {
  const path = resolve(text)
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path
  throw new Usage(`--judge ${text}: there is no such file; name one that --events wrote`)
}

/** Old events would be judged with the new ones. */
function newFile(text: string | undefined, reader: Reader): string | undefined {
  const path = writable(text, '--events', reader)
  if (path !== undefined && existsSync(path))
    throw new reader.Usage(`--events ${text}: the file exists; name a new one`)
  return path
}

/** Checked before the run, which may take hours. */
function writable(text: string | undefined, option: string, { Usage }: Reader): string | undefined {
  if (text === undefined) return undefined
  const path = resolve(text)
  try {
    accessSync(dirname(path), constants.W_OK)
    return path
  } catch {
    throw new Usage(`${option} ${text}: the folder ${dirname(path)} is missing or not writable`)
  }
}

function subjectOf(
  lab: string | undefined,
  store: string | undefined,
  { seeHelp, suggest, Usage }: Reader,
): ProveOptions['subject'] {
  const known = Object.keys(ENGINES)
  if (lab !== undefined && store !== undefined)
    throw new Usage(`--lab starts servers and --store uses external ones: give one of them; ${seeHelp('prove')}`)
  if (store !== undefined) return { store }
  if (lab === undefined)
    throw new Usage(`--lab ENGINE is missing, one of ${known.join(', ')}; or --store URL; ${seeHelp('prove')}`)
  if (!Object.hasOwn(ENGINES, lab))
    throw new Usage(`--lab ${lab} is unknown${suggest(lab, known)}; there are ${known.join(', ')}`)
  return { lab }
}

/** The known violation of this engine. */
function knownOf(subject: ProveOptions['subject'], faults: string | undefined, { Usage }: Reader): LabEngine['known'] {
  const engine = 'lab' in subject ? ENGINES[subject.lab] : undefined
  if (!engine) throw new Usage('--known-violation breaks servers: it needs --lab, not --store')
  if (faults !== undefined) throw new Usage('--known-violation has its own faults: remove --faults')
  return engine.known
}

/** A list of names and groups of faults, `all` or `none`. */
function faultsOf(
  subject: ProveOptions['subject'],
  text: string | undefined,
  { suggest, Usage }: Reader,
): readonly string[] {
  const { what, faults: usual, others } = knownTo(subject)
  const known = [...usual, ...others]
  if (text === undefined) return usual
  if (text === 'none') return []
  if (text === 'all') return known
  const chosen = new Set<string>()
  for (const word of text.split(',')) {
    const group = known.filter(name => FAULTS[name]?.group === word)
    for (const name of group) chosen.add(name)
    if (known.includes(word)) chosen.add(word)
    else if (group.length === 0) {
      const other = Object.hasOwn(FAULTS, word) ? ` of ${what}` : suggest(word, known)
      throw new Usage(`--faults: there is no fault ${word || "''"}${other}; there are ${known.join(', ')}`)
    }
  }
  return [...chosen]
}

/** On external servers, faults hit only the clients and their connections. */
function knownTo(subject: ProveOptions['subject']): {
  what: string
  faults: readonly string[]
  others: readonly string[]
} {
  const engine = 'lab' in subject ? ENGINES[subject.lab] : undefined
  if (engine) return engine
  const harmless = Object.keys(FAULTS).filter(name => ['client', 'network'].includes(FAULTS[name]?.group ?? ''))
  return { what: 'external servers', faults: harmless, others: ['client-clock'] }
}

function number(text: string, option: string, [least, most]: readonly [number, number], { Usage }: Reader): number {
  const value = Number(text)
  if (/^\d{1,10}$/.test(text) && value >= least && value <= most) return value
  throw new Usage(`${option} ${text || "''"}: expected a whole number from ${least} to ${most}`)
}
