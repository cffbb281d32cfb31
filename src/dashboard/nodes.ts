import type { NodeRecord } from '../contract/store.ts'
import type { Readable } from './reader.ts'

/** Milliseconds for which an answer is shown again. */
const FRESH = 5_000

/** The servers of a store that is made of several. All viewers together ask for them every 5 s at most. */
export class Nodes {
  readonly #locks: Readable
  #answer: Promise<readonly NodeRecord[] | undefined> | undefined
  #asked = 0

  constructor(locks: Readable) {
    this.#locks = locks
  }

  /** `undefined`: the store is one server, or they are unknown because too few of them answer. */
  get(name: string): Promise<readonly NodeRecord[] | undefined> {
    if (!this.#answer || performance.now() - this.#asked > FRESH) {
      this.#asked = performance.now()
      this.#answer = this.#locks.inspect(name).then(
        ({ nodes }) => {
          if (!nodes) this.#asked = Number.POSITIVE_INFINITY // it never has any
          return nodes
        },
        () => undefined,
      )
    }
    return this.#answer
  }
}
