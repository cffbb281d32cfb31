import type { ShiftedClock } from '../servers/clock.ts'
import type { ServerProcess } from '../servers/process.ts'
import type { Fault, Turn } from './fault.ts'
import { between, pick, type Random } from './random.ts'

export interface ServerFaultsOptions<Server extends ServerProcess> {
  /** How many servers must serve. */
  readonly needed: number
  /** Chooses the server. @default any */
  readonly choose?: (random: Random) => Promise<Server>
  /** Removes the data of a server that is down. Without it, there is no `server-forget`. */
  readonly wipe?: ((server: Server) => void) | undefined
  /** Does a restart forget the holders? @default false */
  readonly restartForgets?: boolean
  /** How many servers may forget before promises are off. @default 0 */
  readonly mayForget?: number
  /** Makes faults exclude each other. @default these faults only */
  readonly exclusive?: (fault: Fault) => Fault
}

/** The faults of servers, at one server at a time. */
export function serverFaults<Server extends ServerProcess>(
  servers: readonly Server[],
  options: ServerFaultsOptions<Server>,
): Record<string, Fault> {
  const { needed, wipe, restartForgets = false, mayForget = 0, exclusive = oneAtATime() } = options
  const { choose = async random => pick(random, servers) } = options
  const down = servers.length - 1 < needed ? { stopsMajority: true } : {}
  const name = (server: Server): string => (servers.length > 1 ? `server ${servers.indexOf(server) + 1}` : 'the server')
  const kill =
    (forget?: (server: Server) => void): Fault =>
    async turn => {
      const server = await choose(turn.random)
      turn.report(name(server), { ...down, ...((forget || restartForgets) && mayForget < 1 && { forgets: true }) })
      await killFor(turn.length, server, turn, forget)
    }
  return {
    'server-pause': exclusive(async turn => {
      const server = await choose(turn.random)
      turn.report(name(server), down)
      await pauseFor(turn.length, server, turn)
    }),
    'server-kill': exclusive(kill()),
    ...(wipe && { 'server-forget': exclusive(kill(wipe)) }),
  }
}

/** Kills a server, and starts it again after `ms` milliseconds. */
export async function killFor<Server extends ServerProcess>(
  ms: number,
  server: Server,
  { wait }: Turn,
  forget?: (server: Server) => void,
): Promise<void> {
  await server.kill()
  await wait(ms)
  forget?.(server)
  await server.start()
}

/** Pauses a server for `ms` milliseconds. */
export async function pauseFor(ms: number, server: ServerProcess, { wait }: Turn): Promise<void> {
  await server.pause()
  try {
    await wait(ms)
  } finally {
    server.resume()
  }
}

/** Clock jumps from `least` to `most` milliseconds. The clocks are those of the servers, in order. */
export function clockFaults(
  clocks: readonly ShiftedClock[],
  least: number,
  most: number,
  jump: 'jumpWall' | 'jumpMonotonic' = 'jumpWall',
): Record<string, Fault> {
  if (clocks.length === 0) return {}
  return {
    async 'server-clock'({ random, report, wait, length }) {
      const index = Math.floor(random() * clocks.length)
      const ms = Math.round(between(random, least, most))
      const target = clocks.length > 1 ? `server ${index + 1}` : 'the server'
      report(`${target}, by ${ms} ms`, { changesClock: true })
      clocks[index]?.[jump](ms)
      await wait(length)
    },
  }
}

/** For how many ttls no fault follows one of its kind whose effects show in calm times. */
export const CALM = 6

/**
 * Makes faults exclude each other: while one is under way, and for `rest` ms after it, the others are not possible. Servers
 * that need long to elect a leader would otherwise never serve, and a run would show nothing.
 */
export function oneAtATime(rest = 0): (fault: Fault) => Fault {
  let busy = false
  return fault => async turn => {
    if (busy) return
    busy = true
    try {
      await fault(turn)
    } finally {
      if (rest === 0) busy = false
      else setTimeout(() => (busy = false), rest).unref()
    }
  }
}
