import { checkKeys, invalid } from '../../contract/check.ts'
import type { Marks } from '../mark.ts'
import { type RequestFence, type RequestHeaders, readFence } from './headers.ts'
import { type FenceProblem, MISSING, malformed, staleProblem } from './problem.ts'

export interface CheckOptions {
  /** The resource that the request writes to. A header with another resource is refused. @default the header */
  readonly resource?: string | undefined
  /** Refuse requests without a token? @default true */
  readonly required?: boolean | undefined
  /** Ends the wait for the marks. */
  readonly signal?: AbortSignal | undefined
}

const checkOptions = new Set(['resource', 'required', 'signal'])

/** The result has at most one of the two. Neither: the request has no token, and none is required. */
export interface Checked {
  readonly fence?: RequestFence
  readonly problem?: FenceProblem
}

/**
 * Raises the mark of the resource to the token in the headers of a request. If it cannot, it resolves to the problem to
 * answer with: 412 for a stale token, 400 for a malformed one, 428 for a missing one. Rejects with any other error of the
 * marks. With `null` for marks it only parses the headers, for a handler that checks in the transaction of its write.
 *
 * Not promised: that the holder is still the newest when the handler writes. See `inTurn`, or check again in the
 * transaction.
 */
export async function checkFence(
  headers: RequestHeaders,
  marks: Marks | null,
  options: CheckOptions = {},
): Promise<Checked> {
  checkKeys(options, checkOptions, 'checkFence')
  const { resource, required = true, signal } = options
  let fence: RequestFence | undefined
  try {
    fence = readFence(headers, resource)
  } catch (error) {
    return { problem: malformed(error) }
  }
  if (!fence) return required ? { problem: MISSING } : {}
  try {
    if (marks !== null) await marks.raise(fence.name, fence, signal)
    return { fence }
  } catch (error) {
    const problem = staleProblem(error)
    if (problem) return { problem }
    throw error
  }
}

const fences = new WeakMap<object, RequestFence>()

/** Stores what a request presented, so that its handler finds it. */
export function setFence(request: object, fence: RequestFence | undefined): void {
  if (fence) fences.set(request, fence)
}

/**
 * Returns what a request presented, for handlers behind one of the middlewares. Takes the request, or the context of Hono.
 * @throws LeaseError INVALID_ARGUMENT if the request passed no middleware, or has no token where none is required
 */
export function fenceOf(request: object): RequestFence {
  const fence = fences.get(request)
  if (fence) return fence
  throw invalid('this request has no token, or was not checked: put the middleware before its handler')
}
