import { LeaseError } from '../../contract/errors.ts'
import type { Lease } from '../../contract/lease.ts'
import type { AcquireTerms } from '../../core/options.ts'
import type { Held } from '../../core/work.ts'
import { Acquiring } from './acquirable.ts'
import { Gathering } from './gathering.ts'
import type { SharingHost } from './host.ts'
import { type LeaseSet, LeaseSetHandle } from './lease-set.ts'
import { distinctNames, inOrder } from './names.ts'

/** Several names at once, as `locks.all` promises. */
export class AllNames extends Acquiring<LeaseSet> {
  readonly #names: readonly string[]
  readonly #ordered: readonly string[]

  /** Throws `INVALID_ARGUMENT`. */
  constructor(host: SharingHost, names: readonly string[]) {
    super(host)
    this.#names = distinctNames(names)
    this.#ordered = inOrder(this.#names)
  }

  protected async hold(terms: AcquireTerms): Promise<Held<LeaseSet> | LeaseError> {
    const gathered = await new Gathering(this.host, this.#ordered, terms).run()
    if (LeaseError.is(gathered)) return gathered
    const { set, handles } = gathered
    const handle = new LeaseSetHandle(
      set,
      this.#names.map(name => handles.get(name) as Lease),
    )
    return {
      handle,
      get signal() {
        return set.signal // reading it may detect a loss
      },
      abort: reason => set.abort(reason),
      end: () => set.end(),
    }
  }
}
