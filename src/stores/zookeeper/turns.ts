/** Work that must run one after the other: each with the same key begins once the one before it has ended. */
export class Turns {
  /** The last work of each key. */
  readonly #last = new Map<string, Promise<void>>()

  /** Starts `work` at once if nothing with this key runs. `next` is the work to do after a wait. @default `work` */
  take<Answer>(key: string, work: () => Promise<Answer>, next: () => Promise<Answer> = work): Promise<Answer> {
    const before = this.#last.get(key)
    const answer = before ? before.then(next) : work()
    const settled = answer.then(
      () => {},
      () => {},
    )
    this.#last.set(key, settled)
    void settled.then(() => this.#last.get(key) === settled && this.#last.delete(key))
    return answer
  }

  /** Does work with this key run? */
  isTaken(key: string): boolean {
    return this.#last.has(key)
  }
}
