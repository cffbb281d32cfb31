import { setTimeout as sleep } from 'node:timers/promises'
import { systemEnvironment } from '../../contract/environment.ts'
import type { Store } from '../../contract/store.ts'
import { Marker } from '../../core/marker.ts'
import { type Lease, type Locks, subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { messageOf } from '../failure.ts'
import type { Output } from '../output.ts'
import type { Signals } from '../signals.ts'
import { type Held, leasesOf, namesOf } from './held.ts'
import { type Release, release } from './hold.ts'
import type { RunOptions } from './run-options.ts'

/** The shortest retention in milliseconds. A shorter one could end before a slow store answers. */
const SHORTEST = 1_000

const environment = systemEnvironment()

/**
 * Leases that outlive the process: the names themselves for `--at-least`, and a marker for `--skip-if-ran-since`. Nobody renews
 * them, so the store measures the time, and no clock of one machine is compared with another's.
 */
export class Retention {
  readonly #options: RunOptions
  readonly #output: Output
  readonly #longest: number
  readonly #marker: Marker | undefined

  /** Throws what `check` throws. */
  constructor({ store }: Locks, options: RunOptions, output: Output) {
    this.#options = options
    this.#output = output
    this.#longest = store.guarantees.maxUnattended ?? Number.POSITIVE_INFINITY
    this.#marker = markerIn(store, options)
  }

  /** Throws `INVALID_ARGUMENT` if the store cannot keep the marker that long. Sends no request. */
  static check({ store }: Locks, options: RunOptions): void {
    markerIn(store, options)
  }

  /** True if a run succeeded within `--skip-if-ran-since`. Then, and after an error, it releases the lease, if any. */
  async shouldSkip(lease?: Held): Promise<boolean> {
    const { name } = this.#options
    let isKept = false
    try {
      const holder = await this.#marker?.find()
      isKept = holder === undefined
      if (!holder) return false
      const { owner, remaining } = holder
      const message = `${name} was run by ${owner} and is not run again for ${formatDuration(remaining)}: skipped`
      this.#output.info('skipped', message, { name, owner, remaining })
      return true
    } catch (error) {
      if (lease) throw error
      return false // the acquire retries for longer, and reports what is wrong
    } finally {
      if (lease && !isKept) await release(lease, this.#output)
    }
  }

  /** Starts the time of `--at-least`. Returns the function that releases the lease after the run. */
  start(signals: Signals): Release {
    const until = performance.now() + this.#options.atLeast
    const began = environment.clock.now()
    return async (lease, output, exit) => {
      // A lease that expires from here on was held while the command ran.
      let hasExpired = false
      const leases = leasesOf(lease)
      const unsubscribe = subscribe('lease_lost', event => {
        hasExpired ||= leases.includes(event.lease) && event.reason === 'expired'
      })
      // Many commands exit with 0 on SIGTERM although they have not finished.
      if (exit === 0 && signals.received && this.#marker)
        this.#notMarked('it ended with 0 after a signal, perhaps before it had finished')
      else if (exit === 0 && !lease.signal.aborted) await this.#mark(leases[0], began)
      const left = Math.ceil(until - performance.now())
      if (left >= SHORTEST && left <= this.#longest && (await leave(lease, left))) return undefined
      await waitHolding(lease, left, signals)
      const loss = await release(lease, output)
      unsubscribe()
      if (loss && !hasExpired) await this.#marker?.remove() // another command may have run at the same time
      if (!hasExpired) return loss
      if (left > 0)
        output.failed('not_kept', `${namesOf(lease)} was not held for all of --at-least: ${messageOf(loss)}`)
      return undefined
    }
  }

  async #mark(lease: Lease, began: number): Promise<void> {
    const { owner, token } = lease
    const failure = await this.#marker?.write('slot' in lease ? { owner } : { owner, token }, began)
    if (failure) this.#notMarked(messageOf(failure))
  }

  #notMarked(why: string): void {
    const { name } = this.#options
    this.#output.failed('not_marked', `${name} ran, but may run again too soon: ${why}`, { name })
  }
}

function markerIn(store: Store, { name, skipIfRanSince: since }: RunOptions): Marker | undefined {
  return since === undefined ? undefined : new Marker({ store, ...environment }, name, since, '--skip-if-ran-since')
}

/** Lets the lease end after `delay` ms without its process. False if the store did not extend it. */
async function leave(lease: Held, delay: number): Promise<boolean> {
  try {
    await lease.extend(delay)
    return true
  } catch {
    return false
  }
}

/** Holds the lease for `delay` ms after the command. A signal or the loss of the lease ends the wait. */
async function waitHolding(lease: Held, delay: number, signals: Signals): Promise<void> {
  if (delay <= 0 || signals.received) return
  const stopped = new AbortController()
  signals.forward(() => signals.received && stopped.abort())
  await sleep(delay, undefined, { signal: AbortSignal.any([stopped.signal, lease.signal]) }).catch(() => {})
}
