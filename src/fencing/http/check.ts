import { checkKeys, invalid } from '../../contract/check.ts'
import type { Marks } from '../mark.ts'
import { type RequestFence, type RequestHeaders, readFence } from './headers.ts'
import { type FenceProblem, MISSING, malformed, staleProblem } from './problem.ts'

export interface CheckOptions {
  /** What the request is about, if the server knows; a header that names another is refused. @default the header */
  readonly resource?: string | undefined
  /** Is a request refused that shows no token? @default true */
  readonly required?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

const checkOptions = new Set(['resource', 'required', 'signal'])

/** Exactly one of them is there, none if nothing was shown and nothing is required. */
export interface Checked {
  readonly fence?: RequestFence
  readonly problem?: FenceProblem
}

/**
 * Raises the mark of the resource to what the headers of a request show, or says how to answer: 412 stale, 400 malformed,
 * 428 nothing shown. Rejects with whatever else the marks reject with. With `null` for marks nothing is raised, and
 * nothing is stale: for a handler that checks in the transaction of its write.
 *
 * Not promised: that a write that follows is still the newest. See `inTurn`, or check again in the transaction.
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

/** Notes what a request showed, for its handler. */
export function setFence(request: object, fence: RequestFence | undefined): void {
  if (fence) fences.set(request, fence)
}

/**
 * What a request showed, in its handler behind one of the middlewares: of the request, or of Hono's context.
 * @throws LeaseError INVALID_ARGUMENT if it went through none, or showed nothing and did not have to
 */
export function fenceOf(request: object): RequestFence {
  const fence = fences.get(request)
  if (fence) return fence
  throw invalid('this request shows no token, or was not checked: put the middleware before its handler')
}
