/** More are forgotten. A call for a forgotten name sends one request more. */
const MOST = 1_000

/** Names of which a call found the slot taken that it asked for first. The next call asks for all slots at once. */
export class CrowdedNames {
  readonly #names = new Set<string>()

  has(name: string): boolean {
    return this.#names.has(name)
  }

  set(name: string, isCrowded: boolean): void {
    if (!isCrowded) this.#names.delete(name)
    else {
      if (this.#names.size >= MOST) this.#names.clear()
      this.#names.add(name)
    }
  }
}
