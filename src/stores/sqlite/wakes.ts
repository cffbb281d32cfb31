import type { ClaimKey } from '../../store.ts'
import type { Clock } from '../../time.ts'
import type { Leases } from './leases.ts'

interface Watch {
  readonly name: string
  readonly wake: () => void
  /** The moment of the release for which it was woken last. */
  wokenFor: number | undefined
}

/** Milliseconds, mean of a random one, between two looks for what other processes let go of. */
const INTERVAL = 10

/**
 * Wakes those whose turn it is to take a name that was let go of: at once when this process did, by looking again and
 * again when another one did. One timer for all who wait, none when nobody does, and it keeps no process alive.
 */
export class Wakes {
  readonly #clock: Clock
  readonly #look: (read: (leases: Leases, now: number) => void) => void
  readonly #watches = new Map<string, Watch>()
  #stopTimer: (() => void) | undefined
  #closed = false

  constructor(clock: Clock, look: (read: (leases: Leases, now: number) => void) => void) {
    this.#clock = clock
    this.#look = look
  }

  add({ name, id }: ClaimKey, wake: () => void, signal: AbortSignal): void {
    if (signal.aborted || this.#closed) return
    const watch: Watch = { name, wake, wokenFor: undefined }
    this.#watches.set(id, watch)
    const remove = (): void => {
      if (this.#watches.get(id) === watch) this.#watches.delete(id)
      if (this.#watches.size === 0) this.#stop()
    }
    signal.addEventListener('abort', remove, { once: true })
    if (!this.#stopTimer) this.#schedule()
  }

  /** Looks now. It takes 3 us while nothing was let go of. */
  check(): void {
    if (this.#watches.size === 0) return
    this.#look((leases, now) => {
      for (const { name, expires } of leases.freed(now)) {
        for (const id of leases.due(name, expires, now)) this.#wake(id, expires)
      }
    })
  }

  close(): void {
    this.#closed = true
    this.#watches.clear()
    this.#stop()
  }

  #wake(id: string, since: number): void {
    const watch = this.#watches.get(id)
    if (!watch || watch.wokenFor === since) return
    watch.wokenFor = since
    watch.wake()
  }

  #schedule(): void {
    const look = (): void => {
      this.#schedule()
      this.check()
    }
    this.#stopTimer = this.#clock.after(INTERVAL * (0.5 + Math.random()), look, true)
  }

  #stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }
}
