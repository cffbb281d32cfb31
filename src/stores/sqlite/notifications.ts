import { type FSWatcher, realpathSync, watch as watchFile } from 'node:fs'
import type { ClaimKey, Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Hint, Leases } from './leases.ts'

interface Watch {
  readonly wake: Wake
  /** The cause of the last wake. */
  wokenFor: string | undefined
}

/** Reads from the file. `undefined`: the file is not open, or cannot be read now. */
type TryRead = <T>(read: (leases: Leases) => T) => T | undefined

/**
 * The mean of the random pause in milliseconds between two checks of an unchanged file. It costs 0.3 % of a processor. If
 * the system does not report changed files, this is how late a release by another process is noticed.
 */
const SLOW = 50

/**
 * Milliseconds until the first check after another process began to write. Each further pause is twice as long, because a
 * write is visible only after the disk has synced. It also limits how often the file is checked during many writes.
 */
const QUICK = 2

/**
 * Wakes waiters whose name has changed. A change by this process is noticed at once. A change by another process is noticed
 * when the file changes, or by an occasional check. One timer serves all waiters. It runs only while there are any, and
 * does not keep the process alive.
 */
export class Notifications {
  readonly #path: string
  readonly #clock: Clock
  readonly #tryRead: TryRead
  /** The watches by the name and the id of their claims. */
  readonly #watches = new Map<string, Map<string, Watch>>()
  #delay = SLOW
  #stopTimer: (() => void) | undefined
  #watcher: FSWatcher | undefined
  #closed = false

  constructor(path: string, clock: Clock, tryRead: TryRead) {
    this.#path = path
    this.#clock = clock
    this.#tryRead = tryRead
  }

  add({ name, id }: ClaimKey, wake: Wake, signal: AbortSignal): void {
    if (signal.aborted || this.#closed) return
    const watch: Watch = { wake, wokenFor: undefined }
    const watches = this.#watches.get(name) ?? new Map<string, Watch>()
    this.#watches.set(name, watches.set(id, watch))
    const remove = (): void => {
      if (watches.get(id) === watch) watches.delete(id)
      if (watches.size === 0 && this.#watches.get(name) === watches) this.#watches.delete(name)
      if (this.#watches.size === 0) this.#stop()
    }
    signal.addEventListener('abort', remove, { once: true })
    if (this.#stopTimer) return
    this.#watchFile()
    this.#schedule(SLOW)
  }

  /** Checks now. It takes 3 us if nothing has changed. */
  check(): void {
    if (this.#watches.size === 0) return
    for (const hint of this.#tryRead(leases => leases.hints(name => this.#watches.has(name))) ?? []) this.#wake(hint)
  }

  close(): void {
    this.#closed = true
    this.#watches.clear()
    this.#stop()
  }

  #wake({ name, id, cause, delay }: Hint): void {
    const watch = this.#watches.get(name)?.get(id)
    if (!watch || watch.wokenFor === cause) return
    watch.wokenFor = cause
    watch.wake(delay)
  }

  #schedule(delay: number): void {
    this.#stopTimer?.()
    this.#delay = delay
    const look = (): void => {
      this.#watchFile()
      this.#schedule(Math.min(2 * delay, SLOW))
      this.check()
    }
    this.#stopTimer = this.#clock.after(delay * (0.5 + Math.random()), look, true)
  }

  /** Watches the file. This is retried at every check, because the file may not exist yet. */
  #watchFile(): void {
    if (this.#watcher) return
    try {
      // Every write changes the write-ahead log. If the path is a link, the log is next to the target.
      this.#watcher = watchFile(`${realpathSync(this.#path)}-wal`, { persistent: false })
    } catch {
      return
    }
    this.#watcher.on('change', type => {
      if (type === 'rename') this.#unwatchFile()
      if (this.#stopTimer && this.#delay > QUICK) this.#schedule(QUICK)
    })
    this.#watcher.on('error', () => this.#unwatchFile())
  }

  #unwatchFile(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  #stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#unwatchFile()
  }
}
