import { checkKeys } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { type AcquireOptions, type AcquireTerms, keysOf, type TryOptions, type Verb } from '../../core/options.ts'
import { type Held, type Tried, type Work, type WorkArguments, workOf } from '../../core/work.ts'
import type { SharingHost } from './host.ts'

/** Something that is acquired as a lease is, with the same options, errors, signals and events. `O`: further options. */
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
  /** As `using`, if that is possible without waiting. Otherwise the work does not run. Rejects as `Locks.tryUsing`. */
  tryUsing<R>(work: Work<L, R>): Promise<Tried<R>>
  tryUsing<R>(options: (TryOptions & O) | undefined, work: Work<L, R>): Promise<Tried<R>>
}

/** Implements the three verbs for anything that can be held. */
export abstract class Acquiring<L extends AsyncDisposable, O = unknown> implements Acquirable<L, O> {
  protected readonly host: SharingHost
  readonly #more: readonly string[]

  /** `more`: the names of the options in `O`. */
  constructor(host: SharingHost, more: readonly string[] = []) {
    this.host = host
    this.#more = more
  }

  async acquire(options?: AcquireOptions & O): Promise<L> {
    return acquired(await this.#hold('acquire', options)).handle
  }

  async tryAcquire(options?: TryOptions & O): Promise<L | undefined> {
    const held = await this.#hold('tryAcquire', options)
    return LeaseError.is(held) ? undefined : held.handle
  }

  async using<R>(...args: WorkArguments<AcquireOptions & O, L, R>): Promise<R> {
    const { options, work } = workOf('using(', args)
    return this.host.works.run(acquired(await this.#hold('using', options)), work, options?.signal)
  }

  async tryUsing<R>(...args: WorkArguments<TryOptions & O, L, R>): Promise<Tried<R>> {
    const { options, work } = workOf('tryUsing(', args)
    return this.host.works.tryRun(await this.#hold('tryUsing', options), work, options?.signal)
  }

  /**
   * Acquires within `terms.wait`; 0 means without waiting. Resolves to a `BUSY` if that was not possible, and
   * rejects with any other error. `options`: as the caller gave them, for those of `O`.
   */
  protected abstract hold(terms: AcquireTerms, options: O): Promise<Held<L> | LeaseError>

  async #hold(verb: Verb, options = {} as AcquireOptions & O): Promise<Held<L> | LeaseError> {
    const known = keysOf(verb)
    checkKeys(options, this.#more.length > 0 ? new Set([...known, ...this.#more]) : known, verb)
    return this.hold(this.host.terms(verb, options), options)
  }
}

function acquired<L>(held: Held<L> | LeaseError): Held<L> {
  if (LeaseError.is(held)) throw held
  return held
}
