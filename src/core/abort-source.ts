/** An `AbortController` that is made when somebody asks for the signal: most leases are released before. */
export class AbortSource {
  #controller: AbortController | undefined
  #abort: { readonly reason: unknown } | undefined

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#abort) this.#controller.abort(this.#abort.reason)
    }
    return this.#controller.signal
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    this.#abort ??= { reason }
    this.#controller?.abort(reason)
  }
}
