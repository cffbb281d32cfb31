import { ENGINES } from '../../lab/engines/index.ts'

/** What runs of each engine, in this order. */
export const PROGRAMMES: readonly string[] = ['usual', 'all', 'sharing']

/** Milliseconds that a run takes. The results of shorter ones are not stored. */
export const DURATION: number = 15 * 60_000

/** The defaults, so that the command line still means the same when they change. */
const SETTINGS = ['--clients', '5', '--ttl', '1s']
const NAMES = ['--names', '3']
/** Fewer permits than leases are granted of a name. With these, ten minutes show enough over each engine. */
const SHARED_NAMES = ['--names', '6', '--sharing']

/** The arguments of `holdfast prove` for a run of `ms` milliseconds. */
export function argumentsOf(engine: string, programme: string, seed: number, ms: number): string[] {
  const { faults = [], others = [] } = ENGINES[engine] ?? {}
  const injected = programme === 'all' ? [...faults, ...others].filter(fault => fault !== 'server-forget') : faults
  return [
    ...['--lab', engine, '--seed', String(seed), '--duration', `${Math.round(ms)}ms`, ...SETTINGS],
    ...['--faults', injected.join(','), ...(programme === 'sharing' ? SHARED_NAMES : NAMES)],
  ]
}

/** The command line of a run. */
export function commandOf(args: readonly string[]): string {
  return `holdfast prove ${args.join(' ')}`
}
