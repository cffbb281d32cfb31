import { LeaseError } from '../../src/index.ts'
import type { RedisClient } from '../../src/stores/redis/index.ts'

/** A client of ioredis, iovalkey, node-redis or valkey-glide. */
export type Client = RedisClient

/** How one attempt ended. All clients vote alike: a majority decides, and its outcome is what is known. */
export interface ExecutionStats {
  readonly membershipSize: number
  readonly quorumSize: number
  readonly votesFor: Set<Client>
  readonly votesAgainst: Map<Client, Error>
}

/** The vote of one client. */
export type ClientExecutionResult =
  | { readonly client: Client; readonly vote: 'for'; readonly value: number }
  | { readonly client: Client; readonly vote: 'against'; readonly error: Error }

export interface ExecutionResult {
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>
  /** When the operation was sent, in ms since 1970. Always set; optional, because results of redlock 5 had none. */
  readonly start?: number
}

/** The outcomes of `count` attempts. Without an error the last one succeeded. */
export function attemptsOf(clients: ReadonlySet<Client>, count: number, error?: Error): Promise<ExecutionStats>[] {
  return Array.from({ length: count }, () => Promise.resolve(statsOf(clients, error)))
}

function statsOf(clients: ReadonlySet<Client>, error: Error | undefined): ExecutionStats {
  return {
    membershipSize: clients.size,
    quorumSize: Math.floor(clients.size / 2) + 1,
    votesFor: new Set(error ? [] : clients),
    votesAgainst: new Map(error ? Array.from(clients, client => [client, reasonOf(client, error)]) : []),
  }
}

/** A client of ioredis that has ended says so to all who ask. */
function reasonOf(client: Client, error: Error): Error {
  if (!LeaseError.is(error, 'STORE_UNAVAILABLE') || (client as { status?: unknown }).status !== 'end') return error
  return new Error('Connection is closed.', { cause: error })
}
