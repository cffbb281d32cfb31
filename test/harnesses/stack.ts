/** Disposes resources in reverse order. Node has `AsyncDisposableStack` only since version 24. */
export class Stack {
  readonly #ends: (() => unknown)[] = []

  use<Resource extends Disposable | AsyncDisposable>(resource: Resource): Resource {
    this.defer(() => (Symbol.asyncDispose in resource ? resource[Symbol.asyncDispose]() : resource[Symbol.dispose]()))
    return resource
  }

  adopt<Resource>(resource: Resource, end: (resource: Resource) => unknown): Resource {
    this.defer(() => end(resource))
    return resource
  }

  defer(end: () => unknown): void {
    this.#ends.push(end)
  }

  /** Disposes all, even if some throw. Then throws the first error. */
  async end(): Promise<void> {
    const errors: unknown[] = []
    for (const end of this.#ends.splice(0).reverse()) {
      try {
        await end()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }
}
