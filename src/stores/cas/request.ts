import type { Name } from '../rules/name.ts'

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

/** Would another process perhaps answer otherwise? */
export function isRefusal(answer: unknown): boolean {
  if (typeof answer === 'object' && answer !== null) return 'held' in answer && !answer.held
  return answer === undefined || answer === false || answer === 'gone'
}
