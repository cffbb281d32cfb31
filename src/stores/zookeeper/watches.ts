/** Knows which waiters of one session to wake when a node changes or is deleted. */
export class Watches {
  readonly #wake: (id: string, delay: number) => void
  /** The waiters that were woken and have not asked since. */
  readonly #told = new Set<string>()
  /** The delay in milliseconds after which each waiter asks, by path and id. */
  readonly #watches = new Map<string, Map<string, number>>()
  /** The watched paths of each waiter. */
  readonly #paths = new Map<string, Set<string>>()

  constructor(wake: (id: string, delay: number) => void) {
    this.#wake = wake
  }

  add(path: string, id: string, delay: number): void {
    const watching = this.#watches.get(path) ?? new Map<string, number>()
    this.#watches.set(path, watching.set(id, delay))
    this.#paths.set(id, (this.#paths.get(id) ?? new Set<string>()).add(path))
  }

  /** The waiters that watch this node, each with its delay. */
  at(path: string): readonly (readonly [id: string, delay: number])[] {
    return [...(this.#watches.get(path) ?? [])]
  }

  /** The waiter asks now. From now on it needs another wake. */
  listen(id: string): void {
    this.#told.delete(id)
  }

  /** Was the waiter woken, and has it not asked since? */
  isTold(id: string): boolean {
    return this.#told.has(id)
  }

  /** This node no longer wakes the waiter. */
  remove(path: string, id: string): void {
    const watching = this.#watches.get(path)
    watching?.delete(id)
    if (watching?.size === 0) this.#watches.delete(path)
    const paths = this.#paths.get(id)
    paths?.delete(path)
    if (paths?.size === 0) this.#paths.delete(id)
  }

  /** The claim no longer waits. A node may exist for days while waiters come and go. */
  forget(id: string): void {
    this.#told.delete(id)
    for (const path of [...(this.#paths.get(id) ?? [])]) this.remove(path, id)
  }

  /** Tells the waiter to ask after `delay` ms. */
  wake(id: string, delay: number): void {
    this.#told.add(id)
    this.#wake(id, delay)
  }

  /** Wakes the waiters that watch a node. The server reports each watched node once. */
  tell(path: string): void {
    for (const [id, delay] of this.at(path)) {
      this.remove(path, id)
      this.wake(id, delay)
    }
  }

  /** Notifications were lost, so every waiter asks. */
  tellAll(): void {
    for (const path of [...this.#watches.keys()]) this.tell(path)
  }
}
