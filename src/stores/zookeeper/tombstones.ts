import { Refused } from './failure.ts'

/** Nodes that refuse claims withdrawn before they arrived, and until when each is needed. */
export class Tombstones {
  /** By path. */
  readonly #until = new Map<string, number>()

  add(path: string, until: number): void {
    this.#until.set(path, until)
  }

  /** The tombstone is no longer needed. */
  end(path: string): void {
    this.#until.set(path, Number.NEGATIVE_INFINITY)
  }

  /** `remove` deletes the node. */
  sweep(now: number, remove: (path: string) => Promise<unknown>): void {
    for (const [path, until] of this.#until) {
      if (until > now) continue
      this.#until.delete(path)
      remove(path).catch(error => {
        if (!(error instanceof Refused)) this.#until.set(path, until)
      })
    }
  }
}
