import { Refused } from './failure.ts'

/** The nodes that refuse claims which were withdrawn before they arrived. Each has a time until which it is needed. */
export class Tombstones {
  /** The time until which each node is needed, by its path. */
  readonly #until = new Map<string, number>()

  add(path: string, until: number): void {
    this.#until.set(path, until)
  }

  /** The tombstone is no longer needed. */
  end(path: string): void {
    this.#until.set(path, Number.NEGATIVE_INFINITY)
  }

  /** Deletes the nodes that are no longer needed. `remove` deletes one. */
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
