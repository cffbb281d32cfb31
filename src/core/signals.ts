/**
 * Any number of actions per signal, through one listener. Thousands of waits may share one shutdown signal, and adding a
 * listener searches those before it: 10,000 take 0.3 s (docs/decisions/many-leases.md).
 */
export class Signals {
  readonly #actions = new Map<AbortSignal, Set<(reason: unknown) => void>>()

  /** Calls `action` with the reason when `signal` aborts, or at once if it has. Returns a function that cancels it. */
  onAbort(signal: AbortSignal | undefined, action: (reason: unknown) => void): () => void {
    if (!signal) return nothing
    if (signal.aborted) {
      action(signal.reason)
      return nothing
    }
    const actions = this.#actions.get(signal) ?? this.#listen(signal)
    const own = (reason: unknown): void => action(reason) // the same action may be added twice
    actions.add(own)
    return () => {
      actions.delete(own)
      if (actions.size > 0 || this.#actions.get(signal) !== actions) return
      this.#actions.delete(signal)
      signal.removeEventListener('abort', this.#run)
    }
  }

  #listen(signal: AbortSignal): Set<(reason: unknown) => void> {
    const actions = new Set<(reason: unknown) => void>()
    this.#actions.set(signal, actions)
    signal.addEventListener('abort', this.#run, { once: true })
    return actions
  }

  readonly #run = (event: Event): void => {
    const signal = event.target as AbortSignal
    const actions = this.#actions.get(signal)
    this.#actions.delete(signal)
    for (const action of actions ?? []) action(signal.reason)
  }
}

/** Calls `action` when the signal aborts, or at once if it has. Reading the signal of a lease may detect a loss. */
export function whenAborted(signal: AbortSignal, action: () => void): void {
  if (signal.aborted) action()
  else signal.addEventListener('abort', action, { once: true })
}

const nothing = (): void => {}
