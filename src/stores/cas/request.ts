import { LeaseError, messageOf } from '../../contract/errors.ts'
import { afterReads } from '../../contract/request.ts'
import type { Clock } from '../../contract/time.ts'
import type { Name } from '../rules/name.ts'
import { PATIENCE } from '../wire/timeouts.ts'

/** A request for a name. */
export interface Request<Answer> {
  /** The claim that gets the answer, and need not be woken. */
  readonly id?: string | undefined
  readonly signal: AbortSignal
  /** Milliseconds from now after which the request is stale and no longer carried out. */
  readonly limit: number
  /** Does a second decision do no harm, and answer the same, if the first one was written? */
  readonly isRepeatable: boolean
  /** Must the record be read first, whatever this process knows? @default false */
  readonly looks?: boolean | undefined
  readonly decide: (rules: Name) => Answer
}

/** A request that is not settled. */
export interface Pending extends Request<unknown> {
  readonly until: number
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Milliseconds until the last of the requests is stale. */
export function limitOf(asked: readonly Pending[], now: number): number {
  return Math.max(...asked.map(({ until }) => until)) - now
}

/** Is it the answer to an acquire, or to the renewal of a lease that is held? */
function isAnswerToClaim(answer: unknown): answer is { readonly held: boolean } {
  return typeof answer === 'object' && answer !== null && 'held' in answer
}

/** The claims whose lease or position these answers renew. */
export function renewedBy(answers: ReadonlyMap<Pending, unknown>): ReadonlySet<string | undefined> {
  return new Set([...answers].flatMap(([{ id }, answer]) => (isAnswerToClaim(answer) ? [id] : [])))
}

/** Would another process perhaps answer otherwise? */
export function isRefusal(answer: unknown): boolean {
  if (isAnswerToClaim(answer)) return !answer.held
  return answer === 'gone' || isAbsence(answer)
}

/** Does the answer say that there is no such lease, although nothing changes? */
export function isAbsence(answer: unknown): boolean {
  return answer === undefined || answer === false
}

/** The reason of copies that are not needed any more. */
const ANSWERED = new Error('another copy of the request was answered')

/**
 * Sends a request, and a copy of it after each second without an answer, because a connection may be dead. The first answer
 * counts, and gives up the others. Of the copies of a write at most one happens, because all expect the same version.
 */
export function insist<Answer>(
  clock: Clock,
  signal: AbortSignal,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const controller = new AbortController()
  let copies = 0
  let stopTimer = (): void => {}
  const end = (): void => {
    stopTimer()
    if (signal.aborted) controller.abort(signal.reason)
    else if (copies > 1) controller.abort(ANSWERED)
  }
  const sendCopy = async (): Promise<void> => {
    copies += 1
    stopTimer = afterReads(clock, PATIENCE, () => void sendCopy(), true)
    try {
      resolve(await send(controller.signal))
    } catch (error) {
      // What refused this copy says nothing about the others.
      reject(copies > 1 ? new LeaseError('OUTCOME_UNKNOWN', messageOf(error), { cause: error }) : error)
    }
    end()
  }
  signal.addEventListener('abort', end, { once: true })
  void sendCopy()
  return promise
}
