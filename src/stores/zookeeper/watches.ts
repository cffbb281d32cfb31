/** Who of the waiters of one session is to be woken when a node changes or goes. */
export class Watches {
  readonly #wake: (id: string, delay: number) => void
  /** Milliseconds after which each is to ask, by path and id. */
  readonly #watches = new Map<string, Map<string, number>>()

  constructor(wake: (id: string, delay: number) => void) {
    this.#wake = wake
  }

  add(path: string, id: string, delay: number): void {
    const watching = this.#watches.get(path) ?? new Map<string, number>()
    this.#watches.set(path, watching.set(id, delay))
  }

  /** The server tells of each node once. */
  tell(path: string): void {
    const woken = this.#watches.get(path)
    this.#watches.delete(path)
    for (const [id, delay] of woken ?? []) this.#wake(id, delay)
  }

  /** What the server would have told is lost. */
  tellAll(): void {
    for (const path of [...this.#watches.keys()]) this.tell(path)
  }
}
