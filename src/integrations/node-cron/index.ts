import { checkKeys, invalid } from '../../contract/check.ts'
import type { Lease } from '../../contract/lease.ts'
import { type TickLocks, Ticks } from '../ticks.ts'

export type { TickLocks } from '../ticks.ts'

export interface CoordinatorOptions {
  /**
   * May a tick begin while the run before goes on, here or on another replica? Then runs have no lease, and `leaseOf`
   * returns `undefined`. @default false
   */
  readonly overlap?: boolean | undefined
}

/** What node-cron passes to a task, as far as `leaseOf` reads it. */
export interface CronContext {
  readonly date: Date
  readonly task?: { readonly name?: string | undefined } | undefined
}

/** The `runCoordinator` of node-cron's tasks. */
export interface Coordinator {
  /** For node-cron: true on one replica for each scheduled time. Rejects if the store fails, and node-cron skips the run. */
  shouldRun(key: string, ttlMs: number): Promise<boolean>
  /** For node-cron: the run is over. */
  onComplete(key: string): Promise<void>
  /**
   * The lease of a run in progress in this process. Its signal aborts when the lease is lost, and its token is for a
   * fence. `undefined`: the run is over, was started by hand, or may overlap.
   */
  leaseOf(context: CronContext): Lease | undefined
}

const known = new Set(['overlap'])
const SLOT = /:\d{4}-\d\d-\d\dT[\d:.]+Z$/

/**
 * Coordinates the tasks of node-cron 4.6 or newer that have `distributed: true`: of all replicas one runs each scheduled
 * time. While it runs, it holds a lease on the name of the task. `distributedLease` of the task (default: 30,000 ms) is
 * how long a scheduled time is remembered: more than the clocks of the replicas differ. `close()` of the locks remains
 * yours. Throws `INVALID_ARGUMENT`.
 *
 *     cron.setRunCoordinator(runCoordinator(locks))
 */
export function runCoordinator(locks: TickLocks, options: CoordinatorOptions = {}): Coordinator {
  checkKeys(options, known, 'runCoordinator')
  if (typeof locks?.tryAcquire !== 'function')
    throw invalid('runCoordinator needs locks, such as createLocks(store) or await connect(url)')
  return new TaskCoordinator(locks, options.overlap ?? false)
}

class TaskCoordinator implements Coordinator {
  readonly #ticks: Ticks
  readonly #overlap: boolean
  readonly #leases = new Map<string, Lease>()

  constructor(locks: TickLocks, overlap: boolean) {
    this.#ticks = new Ticks(locks)
    this.#overlap = overlap
  }

  async shouldRun(key: string, ttlMs: number): Promise<boolean> {
    if (this.#overlap) return this.#ticks.mark(key, ttlMs)
    const lease = await this.#ticks.begin(key.replace(SLOT, ''), key, ttlMs)
    if (lease) this.#leases.set(key, lease)
    return lease !== undefined
  }

  async onComplete(key: string): Promise<void> {
    const lease = this.#leases.get(key)
    this.#leases.delete(key)
    await lease?.release()
  }

  leaseOf({ date, task }: CronContext): Lease | undefined {
    return this.#leases.get(`${task?.name}:${date.toISOString()}`)
  }
}
