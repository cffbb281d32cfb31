import { LeaseError } from '../../contract/errors.ts'

/** The body of a refusal: `application/problem+json`, RFC 9457. Tokens are decimal strings. */
export interface FenceProblem {
  /** 412 stale, 400 malformed, 428 nothing shown. */
  readonly status: 400 | 412 | 428
  readonly title: string
  readonly detail: string
  readonly code: 'STALE_TOKEN' | 'INVALID_ARGUMENT'
  /** What was shown, of 412. */
  readonly token?: string | undefined
  /** The highest that the resource has seen, of 412. */
  readonly highest?: string | undefined
}

const PROBLEM = 'application/problem+json'

const titles = { 400: 'Bad Request', 412: 'Precondition Failed', 428: 'Precondition Required' } as const

/** Nothing was shown. */
export const MISSING: FenceProblem = problem(
  428,
  'Fencing-Token is missing: send the token of your lease, in decimal, and Fencing-Resource',
)

/** What was shown cannot be understood. */
export function malformed(error: unknown): FenceProblem {
  if (LeaseError.is(error) && error.code === 'INVALID_ARGUMENT') return problem(400, error.message)
  throw error
}

/** What was shown is not the newest; `undefined` for any other error. */
export function staleProblem(error: unknown): FenceProblem | undefined {
  if (!LeaseError.is(error) || error.code !== 'STALE_TOKEN') return undefined
  const { message, token, highest } = error
  return { ...problem(412, message), token: token?.toString(), highest: highest?.toString() }
}

function problem(status: keyof typeof titles, detail: string): FenceProblem {
  return { status, title: titles[status], detail, code: status === 412 ? 'STALE_TOKEN' : 'INVALID_ARGUMENT' }
}

/** A response, for any framework to send. */
export interface FenceAnswer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

/**
 * The 412 for a `STALE_TOKEN` of a handler's own, from `inTurn` or from the fence of its database; `undefined` for any
 * other error. For the error handler of a service.
 */
export function staleAnswer(error: unknown): FenceAnswer | undefined {
  const problem = staleProblem(error)
  return problem && answerOf(problem)
}

/** How a problem is sent. */
export function answerOf(problem: FenceProblem): FenceAnswer {
  const body = JSON.stringify(problem)
  const headers = { 'content-type': PROBLEM, 'content-length': String(Buffer.byteLength(body)) }
  return { status: problem.status, headers, body }
}

/** As much of a `Response` as is looked at. */
export interface AnsweredResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  clone(): { json(): Promise<unknown> }
}

/**
 * Rejects `STALE_TOKEN`, with both tokens, if a service answered that by the middleware of this module. Any other
 * response, another 412 too, is left to the caller, with its body unread.
 */
export async function throwIfStale(response: AnsweredResponse): Promise<void> {
  if (response.status !== 412 || !response.headers.get('content-type')?.startsWith(PROBLEM)) return
  const problem = (await response.clone().json()) as Partial<FenceProblem> | null
  if (problem?.code !== 'STALE_TOKEN') return
  throw new LeaseError('STALE_TOKEN', String(problem.detail), {
    token: tokenOf(problem.token),
    highest: tokenOf(problem.highest),
  })
}

function tokenOf(text: unknown): bigint | undefined {
  return typeof text === 'string' && /^\d+$/.test(text) ? BigInt(text) : undefined
}
