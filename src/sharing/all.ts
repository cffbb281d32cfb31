import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import { Acquiring, type ResultOf } from '../core/acquirable.ts'
import type { Host } from '../core/host.ts'
import type { AcquireTerms } from '../core/options.ts'
import { Gathering } from './gathering.ts'
import { type LeaseSet, LeaseSetHandle } from './lease-set.ts'
import { distinctNames, inOrder } from './names.ts'

/** Several names at once, as `locks.all` promises. */
export class AllNames extends Acquiring<LeaseSet> {
  readonly #names: readonly string[]
  readonly #ordered: readonly string[]

  /** Throws `INVALID_ARGUMENT`. A simulation passes another `order`. */
  constructor(host: Host, names: readonly string[], order: typeof inOrder = inOrder) {
    super(host)
    this.#names = distinctNames(names)
    this.#ordered = order(this.#names)
  }

  protected async hold<R>(terms: AcquireTerms, _: unknown, resultOf: ResultOf<LeaseSet, R>): Promise<R> {
    const gathered = await new Gathering(this.host, this.#ordered, terms).run()
    if (LeaseError.is(gathered)) return resultOf({ timeout: () => gathered })
    const { set, handles } = gathered
    const handle = new LeaseSetHandle(
      set,
      this.#names.map(name => handles.get(name) as Lease),
    )
    return resultOf({
      handle,
      get signal() {
        return set.signal // reading it may detect a loss
      },
      abort: reason => set.abort(reason),
      end: () => set.end(),
    })
  }
}
