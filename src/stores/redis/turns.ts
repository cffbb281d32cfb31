/**
 * The addresses of servers that all give the same answer, such as sentinels. Each attempt begins with the next address,
 * because an earlier attempt may hang at the previous one. After a success the next attempt begins with the same address.
 */
export class Turns<Address> {
  readonly #addresses: readonly Address[]
  #first = 0

  constructor(addresses: readonly Address[]) {
    this.#addresses = addresses
  }

  /** Resolves like `attempt` for the first address for which it succeeds. Rejects with the last failure. */
  async take<Result>(attempt: (address: Address) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const first = this.#first++
    let failure: unknown
    for (let i = 0; i < this.#addresses.length; i++) {
      signal.throwIfAborted()
      const at = (first + i) % this.#addresses.length
      try {
        const result = await attempt(this.#addresses[at] as Address)
        this.#first = at
        return result
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
}
