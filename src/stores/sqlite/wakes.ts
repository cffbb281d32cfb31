import { type FSWatcher, realpathSync, watch as watchFile } from 'node:fs'
import type { ClaimKey, Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Leases } from './leases.ts'

interface Watch {
  readonly wake: Wake
  /** The moment of the release for which it was woken last. */
  wokenFor: number | undefined
}

/** Reads from the file, unless that is not open or cannot be read just now. */
type Look = <T>(read: (leases: Leases, now: number) => T) => T | undefined

/**
 * Milliseconds, mean of a random one, between two looks while nothing seems to happen. It costs 0.3 % of a processor,
 * and is how late a release by another process is seen where the system tells nothing of changed files.
 */
const SLOW = 50

/**
 * Milliseconds until the first look after another process began to write; each further one takes twice as long, since
 * what it wrote is not to be seen before its disk has synced. Also what limits the looks when much is written.
 */
const QUICK = 2

/**
 * Wakes those whose turn it is to take a name that was let go of: at once when this process did, by looking when the
 * file changes, and now and then anyway, when another one did. One timer for all who wait, none when nobody does, and
 * it keeps no process alive.
 */
export class Wakes {
  readonly #path: string
  readonly #clock: Clock
  readonly #look: Look
  readonly #watches = new Map<string, Watch>()
  #delay = SLOW
  #stopTimer: (() => void) | undefined
  #watcher: FSWatcher | undefined
  #closed = false

  constructor(path: string, clock: Clock, look: Look) {
    this.#path = path
    this.#clock = clock
    this.#look = look
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

  /** Looks now. It takes 3 us while nothing was let go of. */
  check(): void {
    if (this.#watches.size === 0) return
    for (const { id, since } of this.#look(due) ?? []) this.#wake(id, since)
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

  /** Tried again at every look, since the file, or what the system can watch, may not be there yet. */
  #watchFile(): void {
    if (this.#watcher) return
    try {
      // Every write changes the write-ahead log. Where the path is a link, that lies beside what it leads to.
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

/** Whose turn it is, and since when the name is free. */
function due(leases: Leases, now: number): { id: string; since: number }[] {
  return leases
    .freed(now)
    .flatMap(({ name, expires: since }) => leases.due(name, since, now).map(id => ({ id, since })))
}
