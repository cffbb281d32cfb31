import { checkKeys } from '../contract/check.ts'
import type { Lease } from '../contract/lease.ts'
import type { Host } from './host.ts'
import { type AcquireOptions, type AcquireTerms, keysOf, type TryOptions, type Verb } from './options.ts'
import { type Holding, type NotAcquired, type Tried, type Work, type WorkArguments, workOf } from './work.ts'

/** Something that is acquired like a lease, with the same options, errors, signals and events. `O`: further options. */
export interface Acquirable<L extends AsyncDisposable, O = unknown> {
  /**
   * Acquires it, and waits while others hold it. It is renewed until `release()`. Rejects as `Locks.acquire`. A call that
   * rejects leaves no claim behind.
   */
  acquire(options?: AcquireOptions & O): Promise<L>
  /** Acquires it if that is possible without waiting, else resolves to `undefined`. Rejects as `Locks.tryAcquire`. */
  tryAcquire(options?: TryOptions & O): Promise<L | undefined>
  /**
   * Acquires it, waits while others hold it, runs `work`, and releases when the work has returned. Resolves to the result
   * of the work. Rejects as `Locks.using`: also if the work returned after a loss, with `error.result`.
   */
  using<R>(work: Work<L, R>): Promise<R>
  using<R>(options: (AcquireOptions & O) | undefined, work: Work<L, R>): Promise<R>
  /** Like `using`, but only if no waiting is needed. Otherwise the work does not run. Rejects as `Locks.tryUsing`. */
  tryUsing<R>(work: Work<L, R>): Promise<Tried<R>>
  tryUsing<R>(options: (TryOptions & O) | undefined, work: Work<L, R>): Promise<Tried<R>>
}

/** Makes the result of a call from what it holds, or from the failure to acquire it in time. */
export type ResultOf<L, Result> = (held: Holding<L> | NotAcquired) => Result

type Acquired = AsyncDisposable & Pick<Lease, 'assertHeld'>

/** Implements the verbs for anything that can be held. */
export abstract class Acquiring<L extends Acquired, O = unknown> implements Acquirable<L, O> {
  protected readonly host: Host
  readonly #more: readonly string[]

  /** `more`: the names of the options in `O`. */
  constructor(host: Host, more: readonly string[] = []) {
    this.host = host
    this.#more = more
  }

  acquire(options?: AcquireOptions & O): Promise<L> {
    return this.#hold('acquire', options, held => acquired(held).handle)
  }

  tryAcquire(options?: TryOptions & O): Promise<L | undefined> {
    return this.#hold('tryAcquire', options, held => ('handle' in held ? held.handle : undefined))
  }

  async using<R>(...args: WorkArguments<AcquireOptions & O, L, R>): Promise<R> {
    const { options, work } = workOf(`using(${this.first}`, args)
    const held = this.#stillHeld(await this.#hold('using', options, acquired))
    return this.host.calls.run(held, work, options?.signal)
  }

  async tryUsing<R>(...args: WorkArguments<TryOptions & O, L, R>): Promise<Tried<R>> {
    const { options, work } = workOf(`tryUsing(${this.first}`, args)
    const held = await this.#hold('tryUsing', options, held => held)
    return this.host.calls.tryRun('handle' in held ? this.#stillHeld(held) : held, work, options?.signal)
  }

  /** The parameter before the options, for the message of an error. */
  protected get first(): string {
    return ''
  }

  /**
   * Acquires within `terms.wait`; 0 means without waiting. Rejects with any error but `BUSY`. `options`: what the caller
   * passed, which includes the options of `O`.
   */
  protected abstract hold<R>(terms: AcquireTerms, options: O, resultOf: ResultOf<L, R>): Promise<R>

  /** Throws if it is over before its work begins: grants may arrive together, and the work before may take long. */
  #stillHeld(held: Holding<L>): Holding<L> {
    try {
      held.handle.assertHeld()
    } catch (error) {
      this.host.inBackground(held.end())
      throw error
    }
    return held
  }

  /** Calls `hold` without a promise of its own, which thousands of waiters would keep. */
  #hold<R>(verb: Verb, options = {} as AcquireOptions & O, resultOf: ResultOf<L, R>): Promise<R> {
    try {
      const known = keysOf(verb)
      checkKeys(options, this.#more.length > 0 ? new Set([...known, ...this.#more]) : known, verb)
      return this.hold(this.host.terms(verb, options), options, resultOf)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

/** Returns what was acquired, or throws the `BUSY` of a call that did not acquire. */
export function acquired<L>(held: Holding<L> | NotAcquired): Holding<L> {
  if ('handle' in held) return held
  throw held.timeout()
}
