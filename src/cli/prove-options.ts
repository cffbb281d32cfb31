import { randomInt } from 'node:crypto'
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ENGINES, type LabEngine } from '../../lab/engines/index.ts'
import { FAULTS } from '../../lab/prove/fault.ts'
import { COMMON, parse, seeHelp, suggest } from './arguments.ts'
import { parseDuration } from './duration.ts'
import { Usage } from './failure.ts'

/** `holdfast prove`, as asked for on the command line. Durations in milliseconds. */
export interface ProveOptions {
  /** What is tried: an engine that the lab starts, or the user's own servers. */
  readonly subject: { readonly lab: string } | { readonly store: string }
  readonly faults: readonly string[]
  readonly duration: number
  readonly ttl: number
  readonly seed: number
  readonly clients: number
  readonly names: number
  readonly fence: boolean
  /** Show what the engine does not promise to bear, instead of trying what it does. */
  readonly known: boolean
  /** The file that the history is kept in. */
  readonly events: string | undefined
  /** Where the page goes that shows it. */
  readonly report: string | undefined
  readonly json: boolean | undefined
  readonly quiet: boolean | undefined
}

const OPTIONS = {
  ...COMMON,
  lab: { type: 'string' },
  faults: { type: 'string' },
  duration: { type: 'string' },
  ttl: { type: 'string' },
  seed: { type: 'string' },
  clients: { type: 'string' },
  names: { type: 'string' },
  'no-fence': { type: 'boolean' },
  'known-violation': { type: 'boolean' },
  events: { type: 'string' },
  report: { type: 'string' },
} as const

const HIGHEST_SEED = 2 ** 32 - 1
/** Of servers that somebody needs: what a run may ask of them. */
const GENTLE = { duration: 600_000, clients: 8, names: 4 } as const

/** Reads the options. Throws `Usage`. */
export function parseProve(args: readonly string[]): ProveOptions {
  const { values, positionals } = parse('prove', [...args], OPTIONS)
  if (positionals.length > 0)
    throw new Usage(`prove has no arguments, only options: ${positionals[0]}; ${seeHelp('prove')}`)
  const subject = subjectOf(values.lab, values.store)
  const most = 'store' in subject ? GENTLE : { duration: 86_400_000, clients: 64, names: 64 }
  const isKnown = values['known-violation'] === true
  const known = isKnown ? knownOf(subject, values.faults) : undefined
  const ttl = parseDuration(values.ttl ?? `${known?.ttl ?? 1_000}ms`, '--ttl')
  if (ttl < 500 || ttl > 60_000) throw new Usage(`--ttl ${values.ttl}: expected from 500ms to 60s`)
  const duration = parseDuration(values.duration ?? '30s', '--duration')
  if (duration < 3 * ttl || duration > most.duration) {
    const given = values.duration ?? '30s'
    throw new Usage(`--duration ${given}: expected from 3 ttls (${3 * ttl}ms) to ${most.duration / 60_000}m`)
  }
  return {
    subject,
    faults: known?.faults ?? faultsOf(subject, values.faults),
    known: isKnown,
    duration,
    ttl,
    seed: values.seed === undefined ? randomInt(HIGHEST_SEED + 1) : number(values.seed, '--seed', 0, HIGHEST_SEED),
    clients: number(values.clients ?? '5', '--clients', 2, most.clients),
    names: number(values.names ?? String(known?.names ?? 3), '--names', 1, most.names),
    fence: values['no-fence'] !== true,
    events: newFile(values.events),
    report: writable(values.report, '--report'),
    json: values.json,
    quiet: values.quiet,
  }
}

/** It would be judged with what is there. */
function newFile(text: string | undefined): string | undefined {
  const path = writable(text, '--events')
  if (path !== undefined && existsSync(path))
    throw new Usage(`--events ${text}: the file is there already; name a new one`)
  return path
}

/** Said before anything is started: a run may take long. */
function writable(text: string | undefined, option: string): string | undefined {
  if (text === undefined) return undefined
  const path = resolve(text)
  try {
    accessSync(dirname(path), constants.W_OK)
    return path
  } catch {
    throw new Usage(`${option} ${text}: the folder ${dirname(path)} is missing, or may not be written to`)
  }
}

function subjectOf(lab: string | undefined, store: string | undefined): ProveOptions['subject'] {
  const known = Object.keys(ENGINES)
  if (lab !== undefined && store !== undefined)
    throw new Usage(`--lab starts servers and --store takes yours: give one of them; ${seeHelp('prove')}`)
  if (store !== undefined) return { store }
  if (lab === undefined)
    throw new Usage(`--lab ENGINE is missing, one of ${known.join(', ')}; or --store URL; ${seeHelp('prove')}`)
  if (!Object.hasOwn(ENGINES, lab))
    throw new Usage(`--lab ${lab} is unknown${suggest(lab, known)}; there are ${known.join(', ')}`)
  return { lab }
}

/** What breaks mutual exclusion over this engine. */
function knownOf(subject: ProveOptions['subject'], faults: string | undefined): LabEngine['known'] {
  const engine = 'lab' in subject ? ENGINES[subject.lab] : undefined
  if (!engine) throw new Usage('--known-violation breaks servers: it needs --lab, not --store')
  if (faults !== undefined) throw new Usage('--known-violation has its own faults: leave --faults away')
  return engine.known
}

/** A list of names and groups of faults, `all` or `none`. */
function faultsOf(subject: ProveOptions['subject'], text: string | undefined): readonly string[] {
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

/** Of servers that are not ours nothing is broken but the clients and the ways to them. */
function knownTo(subject: ProveOptions['subject']): {
  what: string
  faults: readonly string[]
  others: readonly string[]
} {
  const engine = 'lab' in subject ? ENGINES[subject.lab] : undefined
  if (engine) return engine
  const harmless = Object.keys(FAULTS).filter(name => ['client', 'network'].includes(FAULTS[name]?.group ?? ''))
  return { what: 'servers that are not its own', faults: harmless, others: ['client-clock'] }
}

function number(text: string, option: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d{1,10}$/.test(text) && value >= least && value <= most) return value
  throw new Usage(`${option} ${text || "''"}: expected a whole number from ${least} to ${most}`)
}
