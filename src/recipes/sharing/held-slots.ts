/** Slots of names that one `Locks` holds, or asks for. A call asks for other slots first. It is only a hint, so nothing is counted. */
export class HeldSlots {
  /** A bit for each slot. */
  readonly #byName = new Map<string, number>()

  /** The bits of the slots of a name. */
  of(name: string): number {
    return this.#byName.get(name) ?? 0
  }

  /** Adds slots until the returned function is called. */
  add(name: string, slots: readonly number[]): () => void {
    let bits = 0
    for (const slot of slots) bits |= 1 << slot
    this.#byName.set(name, this.of(name) | bits)
    return () => {
      const left = this.of(name) & ~bits
      if (left) this.#byName.set(name, left)
      else this.#byName.delete(name)
    }
  }
}
