import { setTimeout as sleep } from 'node:timers/promises'
import { MARKER } from '../../contract/reserved.ts'
import { type Locks, subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { messageOf, Usage } from '../failure.ts'
import type { Output } from '../output.ts'
import { inspectMarker, MARKER_NOTE, markerOf } from '../run-marker.ts'
import type { Signals } from '../signals.ts'
import { type Held, leasesOf, namesOf } from './held.ts'
import { type Release, release } from './hold.ts'
import type { RunOptions } from './run-options.ts'

/** Milliseconds. Less time than this may pass before a slow store answers. */
const SHORTEST = 1_000

const LONGEST_NAME = 255 // bytes

/**
 * Leases that outlive the process: the names themselves for `--at-least`, and a marker for `--skip-if-ran-since`. Nobody renews
 * them, so the store measures the time, and no clock of one machine is compared with another's.
 */
export class Retention {
  readonly #locks: Locks
  readonly #options: RunOptions
  readonly #output: Output
  readonly #longest: number

  constructor(locks: Locks, options: RunOptions, output: Output) {
    this.#locks = locks
    this.#options = options
    this.#output = output
    this.#longest = locks.store.guarantees.longestUnattended ?? Number.POSITIVE_INFINITY
  }

  /** Throws `Usage` if the store cannot keep the marker for so long. Asks nothing. */
  static check({ store }: Locks, { name, skipIfRanSince: since }: RunOptions): void {
    const { kind, guarantees } = store
    const { longestUnattended: longest = Number.POSITIVE_INFINITY } = guarantees
    if (since === undefined) return
    if (since > longest) {
      const limit = `${kind} keeps a lease without its process for at most ${formatDuration(longest)}`
      throw new Usage(`--skip-if-ran-since is too long for this store: ${limit}`)
    }
    const longestName = LONGEST_NAME - Buffer.byteLength(markerOf(''))
    if (Buffer.byteLength(name) > longestName)
      throw new Usage(
        `NAME is too long for --skip-if-ran-since, which uses ${markerOf('NAME')}: expected at most ${longestName} bytes`,
      )
  }

  /** True if a run succeeded within `--skip-if-ran-since`. Then, and after an error, the lease is released. */
  async shouldSkip(lease: Held): Promise<boolean> {
    const { name, skipIfRanSince } = this.#options
    if (skipIfRanSince === undefined) return false
    let isKept = false
    try {
      const holder = await inspectMarker(this.#locks, name)
      isKept = holder === undefined
      if (!holder) return false
      const { owner, remaining } = holder
      const message = `${name} was run by ${owner} and is not run again for ${formatDuration(remaining)}: skipped`
      this.#output.info('skipped', message, { name, owner, remaining })
      return true
    } finally {
      if (!isKept) await release(lease, this.#output)
    }
  }

  /** Starts the time of `--at-least`. Returns how to release the lease after the run. */
  start(signals: Signals): Release {
    const until = performance.now() + this.#options.atLeast
    return async (lease, output, exit) => {
      // A lease that expires from here on was held while the command ran.
      let hasExpired = false
      const leases = leasesOf(lease)
      const unsubscribe = subscribe('lease_lost', event => {
        hasExpired ||= leases.includes(event.lease) && event.reason === 'expired'
      })
      if (exit === 0 && !signals.received) await this.#setMarker() // many commands end with 0 on SIGTERM, unfinished
      const left = Math.ceil(until - performance.now())
      if (left >= SHORTEST && left <= this.#longest && (await leave(lease, left))) return undefined
      await waitHolding(lease, left, signals)
      const loss = await release(lease, output)
      unsubscribe()
      if (!hasExpired) return loss
      if (left > 0) output.warn('not_kept', `${namesOf(lease)} was not held for all of --at-least: ${messageOf(loss)}`)
      return undefined
    }
  }

  async #setMarker(): Promise<void> {
    const { name, skipIfRanSince: ttl, owner } = this.#options
    if (ttl === undefined) return
    try {
      const marker = { ttl, owner, note: MARKER_NOTE, heartbeat: false, [MARKER]: true }
      await this.#locks.tryAcquire(markerOf(name), marker)
    } catch (error) {
      this.#output.warn('not_remembered', `${name} ran, but may run again too soon: ${messageOf(error)}`, { name })
    }
  }
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
