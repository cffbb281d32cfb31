import { invalid } from '../contract/check.ts'
import type { Lease } from '../contract/lease.ts'
import { warn } from '../contract/warnings.ts'
import { METRICS } from './metrics.ts'

/** Of a metric, beside those that it has itself. */
export type Labels = Readonly<Record<string, string>>

/**
 * Which labels the metrics of a lease get. Each different set is a time series of its own, so answer a kind of work, and
 * a name only where names are few.
 */
export type LabelMapper = (lease: Pick<Lease, 'name' | 'owner'>) => Readonly<Record<string, string | number | boolean>>

const NONE: Labels = {}

const taken = new Set(['le', ...Object.values(METRICS).flatMap(({ labels = {} }) => Object.keys(labels))])

/** Asks the user's mapper, and answers the same object for the same labels. Never throws. */
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

  /** Every set of labels that there was. */
  get known(): Iterable<Labels> {
    return this.#known.values()
  }

  of({ name, owner }: Pick<Lease, 'name' | 'owner'>): Labels {
    const mapper = this.#mapper
    if (!mapper) return NONE
    try {
      return this.#intern(checked(mapper({ name, owner })))
    } catch (error) {
      this.#warn(error)
      return this.#intern(NONE)
    }
  }

  #intern(labels: Labels): Labels {
    const key = JSON.stringify(Object.entries(labels))
    const known = this.#known.get(key)
    if (known) return known
    this.#known.set(key, labels)
    this.#onNew(labels)
    return labels
  }

  /** An exception in a listener would end the process, for want of a label. */
  #warn(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    warn(
      'HOLDFAST_LABELS',
      `the function that makes metric labels failed, so leases are counted without labels: ${text}`,
      text,
    )
  }
}

function checked(labels: ReturnType<LabelMapper>): Labels {
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => {
      if (!/^[a-zA-Z][a-zA-Z0-9_]*$/.test(name) || taken.has(name))
        throw invalid(`${JSON.stringify(name)} cannot be a label: use letters, digits and _, but not ${[...taken]}`)
      return [name, String(value)]
    }),
  )
}
