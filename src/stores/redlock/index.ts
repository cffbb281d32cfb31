import { checkBoolean, checkDuration, checkKeys, invalid, show } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { warn } from '../../contract/warnings.ts'
import { QuorumStore } from '../quorum/store.ts'
import type { RedisClient } from '../redis/client.ts'
import { driverOf } from '../redis/driver.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { checkPrefix } from '../url/options.ts'
import { guaranteesOf } from './guarantees.ts'
import { Identities } from './identity.ts'
import { RedisMember } from './member.ts'

export type { CallClient, CustomCommandClient, RedisClient, SendCommandClient } from '../redis/client.ts'

export interface RedlockOptions extends MinTtl {
  /** The prefix of all keys and channels. Use the same value wherever these names are used. @default 'holdfast' */
  readonly prefix?: string | undefined
  /**
   * Milliseconds after which a node counts as unresponsive. The first request has another second to connect.
   * @default 50
   */
  readonly nodeTimeout?: number | undefined
  /**
   * The longest ttl of any claim, in milliseconds. A node that may have lost leases grants none for this long, counted
   * from its start or from when its data was found missing. Use the same value wherever these names are used.
   * @default 30,000
   */
  readonly maxTtl?: number | undefined
  /**
   * Trust nodes right after their start. Use it only if they never lose what they acknowledged (`appendfsync always`), or
   * for throw-away tests. The ttl is then not limited. @default false
   */
  readonly trustRestarted?: boolean | undefined
  /**
   * The share of the ttl that an acquire may take, up to 1. The lease is shorter by the time that the acquire took.
   * @default 1/3
   */
  readonly acquireShare?: number | undefined
  /** The share of the ttl that is subtracted for clock drift, in addition to 2 ms: 0.01 to 0.5. @default 0.01 */
  readonly drift?: number | undefined
}

const optionKeys: ReadonlySet<string> = new Set([
  'prefix',
  'nodeTimeout',
  'maxTtl',
  'trustRestarted',
  'acquireShare',
  'drift',
  'minTtl',
])

const LONGEST_NODE_TIMEOUT = 5_000
const HIGHEST_DRIFT = 0.5

/**
 * Leases by a majority of independent Redis or Valkey servers (Redlock, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/),
 * with fencing tokens. Pass one client for each server, best an odd number from three on. Less than half may fail. As with
 * `redis`, the clients are neither configured nor closed.
 *
 * A server that has restarted or lost its data grants no lease for `maxTtl`. So does a new set of servers, unless
 * `trustRestarted` is set. Throws `INVALID_ARGUMENT` for fewer than two clients, a repeated client, or a cluster client.
 * Calls reject `INVALID_ARGUMENT` once they find that two clients reach the same server, or that a server is a replica.
 */
export function redlock(clients: readonly RedisClient[], options: RedlockOptions = {}): Store {
  checkKeys(options, optionKeys, 'redlock')
  const { prefix = 'holdfast', nodeTimeout = 50, maxTtl = 30_000, trustRestarted = false } = options
  const { acquireShare = 1 / 3, drift = 0.01, minTtl } = options
  checkClients(clients)
  checkPrefix(prefix)
  checkDuration(maxTtl, 'maxTtl')
  checkNumber(nodeTimeout, 'nodeTimeout', 1, LONGEST_NODE_TIMEOUT)
  checkNumber(acquireShare, 'acquireShare', 0.01, 1)
  checkNumber(drift, 'drift', 0.01, HIGHEST_DRIFT)
  checkBoolean(trustRestarted, 'trustRestarted')

  const drivers = clients.map((client, index) => driverOf(client, `redlock, as client ${index + 1},`))
  if (drivers.some(({ isCluster }) => isCluster))
    throw invalid('redlock was given a cluster client: pass a client for each of several independent servers')
  if (!trustRestarted && drivers.some(({ reconnects }) => reconnects))
    throw invalid(
      'redlock was given a pool, a Sentinel client or one of valkey-glide. They reconnect silently, which hides a ' +
        'restart of the server: pass clients of ioredis, iovalkey or redis, or set trustRestarted',
    )
  if (clients.length % 2 === 0)
    warn(
      'HOLDFAST_EVEN_QUORUM',
      `redlock has ${clients.length} servers, and tolerates no more failures than with ${clients.length - 1}: use an odd number`,
      String(clients.length),
    )
  const identities = new Identities()
  const members = drivers.map((driver, index) => {
    const name = driver.address ?? `node ${index + 1}`
    return new RedisMember(driver, {
      name,
      prefix,
      maxTtl: trustRestarted ? 0 : maxTtl,
      acquireShare,
      identities,
    })
  })
  const canListen = drivers.every(driver => driver.canListen)
  const store = new QuorumStore(members, {
    kind: `redlock of ${clients.length}`,
    guarantees: {
      ...guaranteesOf(clients.length, canListen, trustRestarted),
      acquireShare,
      maxUnattended: trustRestarted ? undefined : maxTtl,
    },
    nodeTimeout,
    maxTtl: trustRestarted ? Number.POSITIVE_INFINITY : maxTtl,
    drift,
  })
  return withMinTtl(store, minTtl)
}

function checkClients(clients: readonly RedisClient[]): void {
  if (!Array.isArray(clients))
    throw invalid(`redlock needs an array of clients, one for each server, not ${show(clients)}`)
  if (clients.length < 2)
    throw invalid(
      `redlock was given ${clients.length} client${clients.length === 1 ? ': use redis(client) for one server, or redis:// in a URL' : 's'}; ` +
        'a majority needs independent servers, best three or five',
    )
  if (new Set(clients).size < clients.length)
    throw invalid('redlock was given the same client twice: pass one client for each of several independent servers')
}

function checkNumber(value: unknown, what: string, least: number, most: number): asserts value is number {
  if (typeof value === 'number' && value >= least && value <= most) return
  throw invalid(`${what} must be a number from ${least} to ${most}, not ${show(value)}`)
}
