/** Who of the waiters of one session is to be woken when a node changes or goes. */
export class Watches {
  readonly #wake: (id: string, delay: number) => void
  /** Milliseconds after which each is to ask, by path and id. */
  readonly #watches = new Map<string, Map<string, number>>()
  /** The paths that each is told of. */
  readonly #paths = new Map<string, Set<string>>()

  constructor(wake: (id: string, delay: number) => void) {
    this.#wake = wake
  }

  add(path: string, id: string, delay: number): void {
    const watching = this.#watches.get(path) ?? new Map<string, number>()
    this.#watches.set(path, watching.set(id, delay))
    this.#paths.set(id, (this.#paths.get(id) ?? new Set<string>()).add(path))
  }

  /** It waits no more. A node may be there for days, and waiters come and go meanwhile. */
  forget(id: string): void {
    for (const path of this.#paths.get(id) ?? []) {
      const watching = this.#watches.get(path)
      watching?.delete(id)
      if (watching?.size === 0) this.#watches.delete(path)
    }
    this.#paths.delete(id)
  }

  /** The server tells of each node once. */
  tell(path: string): void {
    const woken = this.#watches.get(path)
    this.#watches.delete(path)
    for (const [id, delay] of woken ?? []) {
      const paths = this.#paths.get(id)
      paths?.delete(path)
      if (paths?.size === 0) this.#paths.delete(id)
      this.#wake(id, delay)
    }
  }

  /** What the server would have told is lost. */
  tellAll(): void {
    for (const path of [...this.#watches.keys()]) this.tell(path)
  }
}
