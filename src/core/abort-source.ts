import { AsyncResource } from 'node:async_hooks'

/**
 * An `AbortController` that is made when the signal is first read, because most leases are released before. Listeners of
 * the signal run in the async context of that read.
 */
export class AbortSource {
  #controller: AbortController | undefined
  #context: AsyncResource | undefined
  #abort: { readonly reason: unknown } | undefined

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#abort) this.#controller.abort(this.#abort.reason)
      else this.#context = new AsyncResource('HoldfastSignal')
    }
    return this.#controller.signal
  }

  get isAborted(): boolean {
    return this.#abort !== undefined
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    this.#abort ??= { reason }
    const context = this.#context
    this.#context = undefined
    context?.runInAsyncScope(() => this.#controller?.abort(reason))
  }
}
