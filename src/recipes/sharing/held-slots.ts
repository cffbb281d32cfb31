/** The slots that permits of one `Locks` hold, by name. A call need not ask for those. */
export class HeldSlots {
  readonly #byName = new Map<string, Set<number>>()

  has(name: string, slot: number): boolean {
    return this.#byName.get(name)?.has(slot) === true
  }

  /** Until the returned function is called. */
  add(name: string, slots: readonly number[]): () => void {
    const held = this.#byName.get(name) ?? new Set()
    this.#byName.set(name, held)
    for (const slot of slots) held.add(slot)
    return () => {
      for (const slot of slots) held.delete(slot)
      if (held.size === 0 && this.#byName.get(name) === held) this.#byName.delete(name)
    }
  }
}
