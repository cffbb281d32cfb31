import { LeaseError } from '../../contract/errors.ts'
import { type AnswerBody, bytesOf } from '../answer.ts'

/** The body of a refusal: `application/problem+json` (RFC 9457). Tokens are decimal strings. */
export interface FenceProblem {
  /** The status. 412: the token is stale. 400: it is malformed. 428: it is missing. */
  readonly status: 400 | 412 | 428
  readonly title: string
  readonly detail: string
  readonly code: 'STALE_TOKEN' | 'INVALID_ARGUMENT'
  /** Only in a 412: the refused token. */
  readonly token?: string | undefined
  /** Only in a 412: the highest token that the resource has seen. */
  readonly highest?: string | undefined
}

const PROBLEM = 'application/problem+json'

/** The longest refusal that is read, in bytes. Refusals of this module have less than 1 KB and the resource. */
const LONGEST_PROBLEM = 65_536

const titles = { 400: 'Bad Request', 412: 'Precondition Failed', 428: 'Precondition Required' } as const

/** The 428 for a request without a token. */
export const MISSING: FenceProblem = problem(
  428,
  'Fencing-Token is missing: send the token of your lease in decimal, and Fencing-Resource',
)

/** The 400 for headers that cannot be parsed. Throws any other error. */
export function malformed(error: unknown): FenceProblem {
  if (LeaseError.is(error) && error.code === 'INVALID_ARGUMENT') return problem(400, error.message)
  throw error
}

/** The 412 for a stale token. `undefined` for any other error. */
export function staleProblem(error: unknown): FenceProblem | undefined {
  if (!LeaseError.is(error) || error.code !== 'STALE_TOKEN') return undefined
  const { message, token, highest } = error
  return { ...problem(412, message), token: token?.toString(), highest: highest?.toString() }
}

function problem(status: keyof typeof titles, detail: string): FenceProblem {
  return { status, title: titles[status], detail, code: status === 412 ? 'STALE_TOKEN' : 'INVALID_ARGUMENT' }
}

/** A response that any framework can send. */
export interface FenceAnswer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/**
 * The 412 response for a `STALE_TOKEN` that a handler got from `inTurn` or from the fence of its database. `undefined` for
 * any other error. For the error handler of a service.
 */
export function staleAnswer(error: unknown): FenceAnswer | undefined {
  const problem = staleProblem(error)
  return problem && answerOf(problem)
}

/** The response for a problem. */
export function answerOf(problem: FenceProblem): FenceAnswer {
  const body = JSON.stringify(problem)
  const headers = { 'content-type': PROBLEM, 'content-length': String(Buffer.byteLength(body)) }
  return { status: problem.status, headers, body }
}

/** The part of a `Response` that `throwIfStale` reads. */
export interface AnsweredResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  clone(): AnswerBody
}

/**
 * Rejects `STALE_TOKEN` with both tokens if the response is a refusal of this module's middleware. Resolves for any other
 * response, including another 412, and leaves its body unread. Rejects a refusal that is not JSON, or is longer than 64 KB.
 */
export async function throwIfStale(response: AnsweredResponse): Promise<void> {
  if (response.status !== 412 || !response.headers.get('content-type')?.startsWith(PROBLEM)) return
  const body = Buffer.from(await bytesOf(response.clone(), LONGEST_PROBLEM)).toString()
  const problem = JSON.parse(body) as Partial<FenceProblem> | null
  if (problem?.code !== 'STALE_TOKEN') return
  const [token, highest] = [tokenOf(problem.token), tokenOf(problem.highest)]
  if (token === undefined || highest === undefined) return
  throw new LeaseError('STALE_TOKEN', String(problem.detail), { token, highest })
}

function tokenOf(text: unknown): bigint | undefined {
  return typeof text === 'string' && /^\d{1,19}$/.test(text) ? BigInt(text) : undefined
}
