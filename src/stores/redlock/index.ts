import { checkDuration, checkKeys, checkText, invalid, show } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { warn } from '../../contract/warnings.ts'
import { QuorumStore } from '../quorum/store.ts'
import type { RedisClient } from '../redis/client.ts'
import { driverOf } from '../redis/driver.ts'
import { type ShortestTtl, withShortestTtl } from '../shared/shortest-ttl.ts'
import { guaranteesOf } from './guarantees.ts'
import { Identities } from './identity.ts'
import { RedisMember } from './member.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from '../redis/client.ts'

export interface RedlockOptions extends ShortestTtl {
  /** As of `redis`: what all keys and channels begin with. The same wherever these names are used. @default 'holdfast' */
  readonly prefix?: string | undefined
  /** Milliseconds for which a node is waited for; the first time it may need another second to connect. @default 50 */
  readonly nodeTimeout?: number | undefined
  /**
   * Milliseconds: the longest ttl of any claim, and for how long a node that may have forgotten leases gives none, counted
   * from its start, or from when it was found without its data. The same wherever these names are used. @default 30,000
   */
  readonly maxTtl?: number | undefined
  /**
   * Ask nodes for leases as soon as they have started? Only if they forget nothing that they acknowledged (`appendfsync
   * always`), or for throw-away tests; a ttl is then not limited. @default false
   */
  readonly trustRestarted?: boolean | undefined
  /** Share of the ttl that an acquire may take; what it took is gone from the lease. Up to 1. @default 1/3 */
  readonly elapsedLimit?: number | undefined
  /** Share of the ttl, beside 2 ms, that is given up for clocks of different speeds: from 0.01 up to 0.5. @default 0.01 */
  readonly drift?: number | undefined
}

const optionKeys: ReadonlySet<string> = new Set([
  'prefix',
  'nodeTimeout',
  'maxTtl',
  'trustRestarted',
  'elapsedLimit',
  'drift',
  'shortestTtl',
])

const LONGEST_NODE_TIMEOUT = 5_000
const HIGHEST_DRIFT = 0.5

/**
 * Leases by a majority of independent Redis or Valkey servers (Redlock, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/),
 * with fencing tokens. A client for each server; an odd number from three on is best, of which less than half may fail.
 * The clients themselves are neither configured nor closed, as with `redis`.
 *
 * A server that was started, or has lost its data, gives no lease for `maxTtl`: so does a fresh set of servers, unless
 * `trustRestarted` is set. Throws `INVALID_ARGUMENT` for fewer than two clients, a client twice, or one of a cluster. Servers
 * that are one and the same, or replicas, are refused with `INVALID_ARGUMENT` by the calls that find it out.
 */
export function redlock(clients: readonly RedisClient[], options: RedlockOptions = {}): Store {
  checkKeys(options, optionKeys, 'redlock')
  const { prefix = 'holdfast', nodeTimeout = 50, maxTtl = 30_000, trustRestarted = false } = options
  const { elapsedLimit = 1 / 3, drift = 0.01, shortestTtl } = options
  checkClients(clients)
  checkText(prefix, 'the prefix')
  if (prefix === '') throw invalid('the prefix is empty: leave it out, or give some text')
  checkDuration(maxTtl, 'maxTtl')
  checkNumber(nodeTimeout, 'nodeTimeout', 1, LONGEST_NODE_TIMEOUT)
  checkNumber(elapsedLimit, 'elapsedLimit', 0.01, 1)
  checkNumber(drift, 'drift', 0.01, HIGHEST_DRIFT)
  if (typeof trustRestarted !== 'boolean')
    throw invalid(`trustRestarted must be true or false, not ${show(trustRestarted)}`)

  const drivers = clients.map((client, index) => driverOf(client, `redlock, as client ${index + 1},`))
  if (drivers.some(({ isCluster }) => isCluster))
    throw invalid('redlock was given a cluster client: pass a client for each of several independent servers')
  if (!trustRestarted && drivers.some(({ reconnects }) => reconnects))
    throw invalid(
      'redlock was given a pool, a Sentinel client or one of valkey-glide, which connect again unnoticed, so that a ' +
        'restart of the server would not be seen: pass clients of ioredis, iovalkey or redis, or set trustRestarted',
    )
  if (clients.length % 2 === 0)
    warn(
      'HOLDFAST_EVEN_QUORUM',
      `redlock has ${clients.length} servers, and tolerates no more failures than with ${clients.length - 1}: use an odd number`,
      String(clients.length),
    )
  const identities = new Identities()
  const acquireLimit = (ttl: number): number => Math.min(LONGEST_REQUEST, ttl * elapsedLimit)
  const members = drivers.map((driver, index) => {
    const name = driver.address ?? `node ${index + 1}`
    return new RedisMember(driver, { name, prefix, maxTtl: trustRestarted ? 0 : maxTtl, acquireLimit, identities })
  })
  const canListen = drivers.every(driver => driver.canListen)
  const store = new QuorumStore(members, {
    kind: `redlock of ${clients.length}`,
    guarantees: {
      ...guaranteesOf(clients.length, canListen, trustRestarted),
      longestUnattended: trustRestarted ? undefined : maxTtl,
    },
    nodeTimeout,
    maxTtl: trustRestarted ? Number.POSITIVE_INFINITY : maxTtl,
    acquireLimit,
    drift,
  })
  return withShortestTtl(store, shortestTtl)
}

function checkClients(clients: readonly RedisClient[]): void {
  if (!Array.isArray(clients))
    throw invalid(`redlock needs an array of clients, one for each server, not ${show(clients)}`)
  if (clients.length < 2)
    throw invalid(
      `redlock was given ${clients.length} client${clients.length === 1 ? ': use redis(client) for one server' : 's'}; ` +
        'a majority needs independent servers, best three or five',
    )
  if (new Set(clients).size < clients.length)
    throw invalid('redlock was given the same client twice: pass one for each of several independent servers')
}

function checkNumber(value: unknown, what: string, least: number, most: number): asserts value is number {
  if (typeof value === 'number' && value >= least && value <= most) return
  throw invalid(`${what} must be a number from ${least} to ${most}, not ${show(value)}`)
}
