import { type FSWatcher, realpathSync, watch as watchFile } from 'node:fs'
import type { ClaimKey, Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Leases } from './leases.ts'

interface Watch {
  readonly wake: Wake
  /** The time of the release for which it was last woken. */
  wokenFor: number | undefined
}

/** Reads from the file. `undefined`: it is not open, or cannot be read now. */
type TryRead = <T>(read: (leases: Leases, now: number) => T) => T | undefined

/**
 * The mean of the random pause between two checks of an unchanged file, in milliseconds. It costs 0.3 % of a processor. A
 * release by another process is noticed this late if the system does not report changed files.
 */
const SLOW = 50

/**
 * Milliseconds until the first check after another process began to write. Each further pause is twice as long, because a
 * write is visible only after the disk has synced. It also limits how often the file is checked during many writes.
 */
const QUICK = 2

/**
 * Wakes waiters that may take a released name. A release by this process is noticed at once. A release by another process
 * is noticed when the file changes, or by an occasional check. One timer serves all waiters. It runs only while there are
 * any, and does not keep the process alive.
 */
export class Notifications {
  readonly #path: string
  readonly #clock: Clock
  readonly #tryRead: TryRead
  readonly #watches = new Map<string, Watch>()
  #delay = SLOW
  #stopTimer: (() => void) | undefined
  #watcher: FSWatcher | undefined
  #closed = false

  constructor(path: string, clock: Clock, tryRead: TryRead) {
    this.#path = path
    this.#clock = clock
    this.#tryRead = tryRead
  }

  add({ id }: ClaimKey, wake: Wake, signal: AbortSignal): void {
    if (signal.aborted || this.#closed) return
    const watch: Watch = { wake, wokenFor: undefined }
    this.#watches.set(id, watch)
    const remove = (): void => {
      if (this.#watches.get(id) === watch) this.#watches.delete(id)
      if (this.#watches.size === 0) this.#stop()
    }
    signal.addEventListener('abort', remove, { once: true })
    if (this.#stopTimer) return
    this.#watchFile()
    this.#schedule(SLOW)
  }

  /** Checks now. It takes 3 us if nothing was released. */
  check(): void {
    if (this.#watches.size === 0) return
    for (const { id, since } of this.#tryRead(due) ?? []) this.#wake(id, since)
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

  /** Retried at every check, because the file may not exist yet. */
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

/** The claims that may take a name, and since when it is free. */
function due(leases: Leases, now: number): { id: string; since: number }[] {
  return leases
    .freed(now)
    .flatMap(({ name, expires: since }) => leases.due(name, since, now).map(id => ({ id, since })))
}
