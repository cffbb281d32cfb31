import { invalid } from '../contract/check.ts'
import { messageOf } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { SharedKind } from '../contract/lease-events.ts'
import { warn } from '../contract/warnings.ts'
import { METRICS } from './metrics.ts'

/** Label names and values of one time series. */
export type Labels = Readonly<Record<string, string>>

/** The facts from which the labels are made. */
export interface Labelled extends Pick<Lease, 'name' | 'owner'> {
  /** What is acquired: a lease on one name, a permit of a semaphore, a reader, a writer, or a name of a set. */
  readonly kind: 'lease' | SharedKind
}

/**
 * Returns the labels for the metrics of a lease. Each distinct set creates a time series, so return a kind of work.
 * Return the lease's name only if there are few names.
 */
export type LabelMapper = (lease: Labelled) => Readonly<Record<string, string | number | boolean>>

/** The facts in an event. Requests are made for single leases, so their failures have no kind. */
export type Unlabelled = Pick<Lease, 'name' | 'owner'> & { readonly kind?: Labelled['kind'] | undefined }

const NONE: Labels = {}

const taken = new Set(['le', ...Object.values(METRICS).flatMap(({ labels = {} }) => Object.keys(labels))])

/** Calls the user's mapper, and returns the same object for equal labels. Never throws. */
export class Labelling {
  readonly #mapper: LabelMapper | undefined
  readonly #known = new Map<string, Labels>()
  readonly #onNew: (labels: Labels) => void

  constructor(mapper: LabelMapper | undefined, onNew: (labels: Labels) => void) {
    if (mapper !== undefined && typeof mapper !== 'function')
      throw invalid(`labels must be a function of the lease, such as ({ name }) => ({ kind: … }), not ${typeof mapper}`)
    this.#mapper = mapper
    this.#onNew = onNew
    if (!mapper) this.#intern(NONE)
  }

  /** Every set of labels so far. */
  get known(): Iterable<Labels> {
    return this.#known.values()
  }

  of({ name, owner, kind = 'lease' }: Unlabelled): Labels {
    const mapper = this.#mapper
    if (!mapper) return NONE
    try {
      return this.#intern(checked(mapper({ name, owner, kind })))
    } catch (error) {
      this.#warn(error)
      return this.#intern(NONE)
    }
  }

  #intern(labels: Labels): Labels {
    const key = JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
    const known = this.#known.get(key)
    if (known) return known
    this.#known.set(key, labels)
    this.#onNew(labels)
    return labels
  }

  /** Warns instead of throwing, because an exception in a listener would end the process. */
  #warn(error: unknown): void {
    const text = messageOf(error)
    warn(
      'HOLDFAST_LABELS',
      `the labels function of the metrics failed, so leases are counted without labels: ${text}`,
      text,
    )
  }
}

function checked(labels: ReturnType<LabelMapper>): Labels {
  const all = Object.entries(labels).map(([name, value]): [string, string] => {
    if (!/^[a-zA-Z][a-zA-Z0-9_]*$/.test(name) || taken.has(name))
      throw invalid(`${JSON.stringify(name)} cannot be a label: use letters, digits and _, but none of ${[...taken]}`)
    return [name, String(value)]
  })
  // To Prometheus an empty value is no label.
  return Object.fromEntries(all.filter(([, value]) => value !== ''))
}
