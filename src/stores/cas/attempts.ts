import type { LeaseError } from '../../contract/errors.ts'
import type { Wakes } from '../rules/name.ts'
import type { NameState } from '../rules/state.ts'
import { fateOf } from './record.ts'
import { isRefusal, type Pending } from './request.ts'

/** Decisions on the record that this process knew, and what to write. */
export interface Decision {
  readonly answers: ReadonlyMap<Pending, unknown>
  /** The state to write. `undefined`: nothing has changed. */
  readonly state: NameState | undefined
  readonly now: number
  readonly wakes: Wakes
}

/** A write that is not confirmed. */
export interface Attempt {
  readonly write: string
  /** The write that it was to follow. */
  readonly after: string | undefined
  readonly decision: Decision
  /** Why it is not confirmed. `undefined`: the version was another one. */
  error?: LeaseError
}

/** The writes that some requests share and that are not confirmed. A later read may show what became of them. */
export class Attempts {
  #attempts: readonly Attempt[] = []
  /** Those that may still happen, by the last read. */
  #open: ReadonlySet<Attempt> = new Set()

  add(attempt: Attempt): void {
    this.#attempts = [...this.#attempts, attempt]
  }

  /** Nothing was written. */
  remove(attempt: Attempt): void {
    this.#attempts = this.#attempts.filter(each => each !== attempt)
  }

  /** May a write have happened that decided the request? */
  has(asked: Pending): boolean {
    return this.#attempts.some(({ decision }) => decision.answers.has(asked))
  }

  /**
   * May a write still happen, or have happened after what was read, that grants the request? `mayLag`: what was read may be
   * old.
   */
  mayGrant(asked: Pending, mayLag: boolean): boolean {
    return this.#attempts.some(attempt => {
      const isPossible = this.#open.has(attempt) || (mayLag && attempt.error !== undefined)
      return isPossible && attempt.decision.answers.has(asked) && !isRefusal(attempt.decision.answers.get(asked))
    })
  }

  /** Why the last one is not confirmed. */
  get error(): LeaseError | undefined {
    return this.#attempts.at(-1)?.error
  }

  /**
   * `writes`: those that the record names. Returns the attempts that happened, and those that are `unclear`, because too much
   * was written since. Only attempts that may still happen, and unclear ones, are kept, while a request of theirs is pending.
   */
  judge(
    writes: readonly string[],
    isPending: (asked: Pending) => boolean,
  ): { readonly done: readonly Attempt[]; readonly unclear: readonly Attempt[] } {
    const {
      done = [],
      open = [],
      unclear = [],
    } = Object.groupBy(this.#attempts, ({ write, after }) => {
      return fateOf(write, after, writes)
    })
    this.#open = new Set(open)
    const isKept = (attempt: Attempt): boolean =>
      (this.#open.has(attempt) || unclear.includes(attempt)) && [...attempt.decision.answers.keys()].some(isPending)
    this.#attempts = this.#attempts.filter(isKept)
    return { done, unclear }
  }
}
