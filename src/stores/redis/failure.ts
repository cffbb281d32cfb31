import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, textOf, unfit } from '../wire/failure.ts'
import { NoAnswer } from '../wire/timeouts.ts'
import type { RedisDriver, Wire } from './client.ts'

/** The circumstances in which a request failed. */
export interface Circumstances {
  readonly sent: boolean
  /**
   * Has the server answered before? Then a refusal is caused by a failover or a changed password, not by a wrong address.
   */
  readonly served: boolean
  readonly isCluster: boolean
  /** See `isPlain` of the driver. */
  readonly isPlain?: boolean | undefined
  /** The key of the lease that the request was for. */
  readonly key?: string | undefined
}

interface Refusal {
  readonly text: RegExp
  readonly code: LeaseErrorCode
  readonly says: string
  /** @default that of the code */
  readonly retryable?: boolean
}

/** This lasts until somebody changes the server or the address. */
const UNFIT = { code: 'STORE_UNAVAILABLE', retryable: false } as const

const ROLE = 'the Redis server is a read-only replica: connect to its master, or through Sentinel or Cluster'

/** Another kind of server answers at this address. */
const otherKind = /cluster support disabled|unknown command .?sentinel/i

const credentials =
  /\bWRONGPASS\b|\bNOAUTH\b|invalid password|invalid username-password|AuthenticationFailed|without any password/

/**
 * The slot of the request moves to another node, or has moved. node-redis does not know a node without slots: the first slot
 * that moves there makes it such an error.
 */
const moves = /\bMOVED\b|\bASK \d|Cannot find node|Too many Cluster redirections$/

// Error texts of servers and clients for requests that were not carried out.
const refusals: readonly Refusal[] = [
  { text: /\bREADONLY\b|read only replica|ReadOnly/, ...UNFIT, says: ROLE },
  { text: /\bNOAUTH\b/, code: 'ACCESS_DENIED', says: 'Redis asks for a password: none was given' },
  {
    text: credentials,
    code: 'ACCESS_DENIED',
    says: 'Redis refused the user or password: correct them in the client or the URL',
  },
  { text: /DB index/, code: 'INVALID_ARGUMENT', says: 'Redis has no such database: correct its number' },
  {
    text: /\bNOPERM\b|ACL failure|can't run this command|can't access|PermissionDenied/,
    code: 'ACCESS_DENIED',
    says: 'the Redis user may not do what leases need: grant the permissions listed in docs/stores/redis.md',
  },
  {
    text: new RegExp(`${moves.source}|\\bCROSSSLOT\\b|CrossSlot`),
    code: 'INVALID_ARGUMENT',
    says:
      'the server is part of a Redis Cluster: pass a cluster client, such as new Cluster([…]) of ioredis; behind a proxy ' +
      "that hides the cluster, give the option prefix: '{holdfast}'",
  },
  {
    text: otherKind,
    code: 'INVALID_ARGUMENT',
    says:
      'the server is no Redis Cluster, or no Sentinel: pass a client for a single server, such as new Redis() of ioredis, ' +
      'or correct the address',
  },
  {
    text: /unknown command|disabled commands/i,
    ...UNFIT,
    says:
      'the server lacks a command that leases need: use Redis 5 or later, or Valkey; for a Sentinel pass a client with its ' +
      'address in sentinels',
  },
  {
    text: /\b(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS|OOM|UNKILLABLE|ERR)\b|non local key|signalled by the server/,
    code: 'STORE_UNAVAILABLE',
    says: 'Redis cannot serve the request now',
  },
]

const format = /\bFORMAT (\S*)/
const exhausted = /\b(TOKEN|COUNTER) (.*)/
const otherType = /\bWRONGTYPE\b/

/** Classifies failed requests to one server or cluster. */
export class Failures {
  /** Has any request been answered other than a mere read? */
  served = false
  readonly #driver: RedisDriver

  constructor(driver: RedisDriver) {
    this.#driver = driver
  }

  /** The error for the caller. `wire` is the connection that the request was sent on. Without `wire`, it was not sent. */
  of(error: unknown, wire?: Wire): LeaseError {
    // A connection that has ended knows a better reason, such as a wrong password.
    const reason = (!isReply(error) && wire?.failure()) || error
    return this.#failure(reason, wire !== undefined)
  }

  /** The error for the caller if a request for this key got this answer. */
  answered(error: unknown, key?: string): LeaseError {
    return this.#failure(error, true, key)
  }

  /**
   * Decides what to do about the connection: one to a master that became a replica, or to a server that hangs, is replaced.
   */
  judge(error: unknown, wire: Wire): 'retire' | 'replace' | 'keep' {
    if (!this.#driver.isCluster && (error instanceof NoAnswer || /READONLY/.test(String(error)))) return 'retire'
    return !isReply(error) && wire.isOpen() ? 'replace' : 'keep'
  }

  #failure(error: unknown, sent: boolean, key?: string): LeaseError {
    const { isCluster, isPlain } = this.#driver
    return failure(error, { sent, served: this.served, isCluster, isPlain, key })
  }
}

/** Did a cluster refuse the request because its slot moves, or has moved? */
export function isMoving(text: string): boolean {
  return moves.test(text) || /\bTRYAGAIN\b/.test(text)
}

/** Is it an error response of the server? Any other error means that the connection has failed. */
export function isReply(error: unknown): boolean {
  const text = textOf(error)
  return refusalOf(text) !== undefined || unusable(text) !== undefined
}

/** The error for the caller. Its cause has only the text, because errors of clients contain commands and passwords. */
export function failure(error: unknown, circumstances: Circumstances): LeaseError {
  if (LeaseError.is(error)) return error
  const { sent, served, isCluster, key } = circumstances
  const text = textOf(error)
  const wrong = unusable(text, key)
  if (wrong) return wrong
  const refusal = refusalOf(text)
  if (!refusal) return noAnswerFrom('Redis', error, sent, hintOf(text, circumstances))
  const says =
    isCluster && (isMoving(text) || /non local key/.test(text))
      ? 'the Redis Cluster moves the slot of the lease'
      : refusal.says
  const passes =
    /READONLY/.test(text) || moves.test(text)
      ? served || isCluster
      : served && (credentials.test(text) || otherKind.test(text))
  const { code, retryable }: Partial<Refusal> = passes ? { code: 'STORE_UNAVAILABLE' } : refusal
  return new LeaseError(code, `${says} (${text})`, { cause: causeOf(error), retryable })
}

/** The error for one name that is unusable although others are usable. */
function unusable(text: string, key = 'of the lease'): LeaseError | undefined {
  const other = format.exec(text)?.[1]
  // A value that begins like format 1 but cannot be read was written by another program.
  if (other === '' || other === '1') return unfit(`the key ${key} is not a lease: choose another prefix, or delete it`)
  if (other !== undefined)
    return new LeaseError(
      'FORMAT_MISMATCH',
      `another version of Holdfast wrote the lease in format ${other}, this one knows format 1: use the same version ` +
        'everywhere',
    )
  const [, of, last] = exhausted.exec(text) ?? []
  if (of)
    return unfit(
      `the ${of === 'TOKEN' ? 'name' : 'server'} has used up its tokens (the last is ${last}): to start again delete the ` +
        `key ${of === 'TOKEN' ? key : 'PREFIX:token'}, see docs/stores/redis.md`,
    )
  if (otherType.test(text))
    return unfit(
      `the key ${key}, or one that begins with it, is of another type (${text}): choose another prefix, or delete it`,
    )
  return undefined
}

/**
 * A hint about the cause. A port with TLS resets connections without TLS, as other kinds of servers do. ioredis 5 does not
 * say why it found no hash slots.
 */
function hintOf(said: string, { served, isPlain = false }: Circumstances): string | undefined {
  if (!served && /refresh slots cache/i.test(said))
    return '; perhaps the server is no Redis Cluster: pass a client for a single server, such as new Redis() of ioredis'
  if (/certificate/i.test(said))
    return '; trust its authority: NODE_EXTRA_CA_CERTS names a file for Node, or give the client its option ca'
  if (served || !isPlain || !/ECONNRESET|EPIPE|closed|Protocol error|RESP type/i.test(said)) return undefined
  return "; perhaps it is another server than Redis, or this port speaks TLS: use rediss://, or the client's option tls"
}

function refusalOf(text: string): Refusal | undefined {
  return refusals.find(refusal => refusal.text.test(text))
}
