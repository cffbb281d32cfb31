import type { NodeRecord } from '../contract/store.ts'
import type { Readable } from './reader.ts'

/** Milliseconds for which an answer is reused. */
const FRESH = 5_000

/** The servers of a store that is made of several. They are read at most every 5 s for all viewers together. */
export class Nodes {
  readonly #locks: Readable
  #answer: Promise<readonly NodeRecord[] | undefined> | undefined
  #asked = 0

  constructor(locks: Readable) {
    this.#locks = locks
  }

  /** The servers. `undefined`: the store is one server, or too few of its servers answer. */
  get(name: string): Promise<readonly NodeRecord[] | undefined> {
    if (!this.#answer || performance.now() - this.#asked > FRESH) {
      this.#asked = performance.now()
      this.#answer = this.#locks.inspect(name).then(
        ({ nodes }) => {
          if (!nodes) this.#asked = Number.POSITIVE_INFINITY // a store that is one server has no nodes
          return nodes
        },
        () => undefined,
      )
    }
    return this.#answer
  }
}
