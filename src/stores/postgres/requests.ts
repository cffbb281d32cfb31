import { requestLimit } from '../../contract/time.ts'
import { type BatchedRequest, BatchedRequests } from '../wire/batched-requests.ts'
import type { Connections } from '../wire/connections.ts'
import type { PostgresConnection } from './connection.ts'
import { exhausted } from './failure.ts'

/** The answer of a function to one request: a word and its values. */
export type Answer = readonly [kind: string, ...rest: unknown[]]

/** The parameters of a function, in its order. If the request can become stale, the last one is `until`. */
export type Parameters = Readonly<Record<string, string | number | boolean>>

/** Sends requests to the server, which returns `[time, [answer, …]]` as JSON. */
type Ask = (connection: PostgresConnection, requests: readonly Parameters[]) => Promise<unknown>

interface Request extends BatchedRequest {
  readonly parameters: Parameters
  /** The time until which the request is retried while its row is locked. */
  readonly patientUntil: number
}

export interface RequestOptions {
  /** The ttl of the claim. The request is stale after a third of it. @default never stale */
  readonly ttl?: number | undefined
  readonly signal: AbortSignal
}

/**
 * Milliseconds for which a request is retried while its row is locked. A claim that did not get the name may keep its row
 * locked until the winner's transaction ends, which takes a write to the disk.
 */
const LOCK_PATIENCE = 1_000

/**
 * The sizes of batches. PostgreSQL needs 7 to 10 us for each request, and as much for a statement as for thirty requests.
 * It blocks no other client.
 */
const [WORTH_SENDING, LARGEST] = [32, 256]

/** Sends requests of one kind to the server. Requests that arrive while others are in flight share the next statement. */
export class Requests {
  readonly #batched: BatchedRequests<PostgresConnection, Request, readonly Answer[]>

  constructor(connections: Connections<PostgresConnection>, ask: Ask) {
    this.#batched = new BatchedRequests({
      store: 'postgres',
      engine: 'PostgreSQL',
      connections,
      largest: LARGEST,
      worthSending: WORTH_SENDING,
      send: (connection, requests, sent) => carryOut(ask, connection, requests, sent),
      settle,
    })
  }

  /** Resolves to the answer of the server. Rejects with a `LeaseError`. */
  put(parameters: Parameters, { ttl, signal }: RequestOptions): Promise<Answer> {
    const now = performance.now()
    const until = ttl === undefined ? undefined : now + requestLimit(ttl)
    const patientUntil = now + Math.min(LOCK_PATIENCE, requestLimit(ttl ?? Number.POSITIVE_INFINITY) / 2)
    return this.#batched.put({ parameters, until, patientUntil, signal })
  }
}

async function carryOut(
  ask: Ask,
  connection: PostgresConnection,
  requests: readonly Request[],
  sent: number,
): Promise<readonly Answer[]> {
  const { clock } = connection
  const all = requests.map(({ parameters, until }) =>
    until === undefined ? parameters : { ...parameters, until: clock.at(until) },
  )
  const text = await ask(connection, all)
  const [time, answers] = JSON.parse(String(text)) as [number, Answer[]]
  if (answers?.length !== requests.length)
    throw new Error(`PostgreSQL gave ${answers?.length} answers to ${requests.length} requests`)
  clock.learn(time, sent)
  return answers
}

/** Could the claim be granted but for a row that was locked, perhaps only by another claim? */
function isBlocked(answer: Answer): boolean {
  return answer[0] === 'busy' && answer[6] === true
}

function settle(request: Request, answers: readonly Answer[], index: number): 'stale' | 'locked' | undefined {
  const answer = answers[index] as Answer
  const [kind] = answer
  if (kind === 'late') return 'stale'
  if ((kind === 'skipped' || isBlocked(answer)) && performance.now() < request.patientUntil) return 'locked'
  if (kind === 'exhausted') request.reject(exhausted())
  else request.resolve(answer)
  return undefined
}
