import type { Fault } from '../prove/fault.ts'
import { between, pick, type Random } from '../prove/random.ts'
import type { ShiftedClock } from '../servers/clock.ts'
import type { ServerProcess } from '../servers/process.ts'

export interface ServerFaultsOptions<Server extends ServerProcess> {
  /** How many must serve. */
  readonly needed: number
  /** Which of them is struck. @default any */
  readonly choose?: (random: Random) => Promise<Server>
  /** Removes the data of one that is down; without it none forgets. */
  readonly wipe?: ((server: Server) => void) | undefined
  /** Does a server that starts again forget who held? @default false */
  readonly restartForgets?: boolean
  /** More than this many that forget are more than the engine bears. @default 0 */
  readonly mayForget?: number
  /** Lets one fault be under way at most. @default one of its own */
  readonly alone?: (fault: Fault) => Fault
}

/** What can go wrong at any of several servers, at one of them at a time, so that what must serve does. */
export function serverFaults<Server extends ServerProcess>(
  servers: readonly Server[],
  options: ServerFaultsOptions<Server>,
): Record<string, Fault> {
  const { needed, wipe, restartForgets = false, mayForget = 0, alone = oneAtATime() } = options
  const { choose = async random => pick(random, servers) } = options
  const down = servers.length - 1 < needed ? { stopsMajority: true } : {}
  const name = (server: Server): string => (servers.length > 1 ? `server ${servers.indexOf(server) + 1}` : 'the server')
  const restart =
    (forget?: (server: Server) => void): Fault =>
    async ({ random, tell, wait, length }) => {
      const server = await choose(random)
      tell(name(server), { ...down, ...((forget || restartForgets) && mayForget < 1 && { forgets: true }) })
      await server.kill()
      await wait(length)
      forget?.(server)
      await server.start()
      return undefined
    }
  return {
    'server-pause': alone(async ({ random, tell, wait, length }) => {
      const server = await choose(random)
      tell(name(server), down)
      await server.pause()
      try {
        await wait(length)
      } finally {
        server.resume()
      }
      return undefined
    }),
    'server-kill': alone(restart()),
    ...(wipe && { 'server-forget': alone(restart(wipe)) }),
  }
}

/** One of these clocks jumps, by so many milliseconds; they are those of the servers, in order. */
export function clockFaults(
  clocks: readonly ShiftedClock[],
  least: number,
  most: number,
  jump: 'jumpWall' | 'jumpMonotonic' = 'jumpWall',
): Record<string, Fault> {
  if (clocks.length === 0) return {}
  return {
    async 'server-clock'({ random, tell, wait, length }) {
      const index = Math.floor(random() * clocks.length)
      const ms = Math.round(between(random, least, most))
      const whose = clocks.length > 1 ? `server ${index + 1}` : 'the server'
      tell(`${whose}, by ${ms} ms`, { changesClock: true })
      clocks[index]?.[jump](ms)
      await wait(length)
      return undefined
    },
  }
}

/** Of the faults that it is given, one is under way at most. */
export function oneAtATime(): (fault: Fault) => Fault {
  let busy = false
  return fault => async turn => {
    if (busy) return false
    busy = true
    try {
      return await fault(turn)
    } finally {
      busy = false
    }
  }
}
