import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, LeaseError, type Locks } from '../index.ts'
import { formatDuration } from './duration.ts'
import { Usage } from './failure.ts'
import { type End, release, text } from './hold.ts'
import type { Output } from './output.ts'
import type { RunOptions } from './run-options.ts'
import type { Signals } from './signals.ts'

/** Milliseconds: no lease is shorter. */
const SHORTEST = 10

/**
 * What a run leaves behind: its name for `--at-least`, and for `--skip-if-ran-since` a lease that nobody renews on the
 * name beside it. So the store counts the time, and no clock of one machine is compared with another's.
 */
export class Kept {
  readonly #locks: Locks
  readonly #options: RunOptions
  readonly #output: Output
  readonly #longest: number

  /** Throws `Usage` if the store cannot keep a lease for so long. */
  constructor(locks: Locks, options: RunOptions, output: Output) {
    this.#locks = locks
    this.#options = options
    this.#output = output
    const { kind, guarantees } = locks.store
    this.#longest = guarantees.longestUnattended ?? Number.POSITIVE_INFINITY
    const since = options.skipIfRanSince ?? 0
    if (since <= this.#longest) return
    const limit = this.#longest > 0 ? `keeps them for ${formatDuration(this.#longest)} at most` : 'ends them with it'
    throw new Usage(`--skip-if-ran-since needs leases that outlive their process, and this store (${kind}) ${limit}`)
  }

  /** True, and said, if a run of the name ended well lately. To be asked while the name is held. */
  async hasRun(): Promise<boolean> {
    const { name, skipIfRanSince } = this.#options
    if (skipIfRanSince === undefined) return false
    const { holder } = await this.#locks.inspect(this.#ran)
    if (!holder) return false
    const { owner, remaining } = holder
    const message = `${name} was run by ${owner} and is not run again for ${formatDuration(remaining)}: skipped`
    this.#output.tell('skipped', message, { name, owner, remaining })
    return true
  }

  /** How the lease is given back after a run that began just now. */
  end(signals: Signals): End {
    const until = performance.now() + this.#options.atLeast
    return async (lease, output, exit) => {
      if (exit === 0) await this.#remember()
      const left = Math.ceil(until - performance.now())
      if (left < SHORTEST || lease.signal.aborted) return release(lease, output)
      if (left <= this.#longest) return this.#leave(lease, left)
      await stay(lease, left, signals)
      return release(lease, output)
    }
  }

  get #ran(): string {
    return `${this.#options.name}:ran`
  }

  async #remember(): Promise<void> {
    const { name, skipIfRanSince: ttl, owner } = this.#options
    if (ttl === undefined) return
    const note = `${name} is not run again before this ends`
    try {
      await this.#locks.tryAcquire(this.#ran, { ttl, owner, note: note.length > 255 ? '' : note, heartbeat: false })
    } catch (error) {
      this.#output.warn('not_remembered', `${name} ran, and may run again too soon: ${text(error)}`, { name })
    }
  }

  /** Lets the lease end by itself. Answers why it was lost before, if it was. */
  async #leave(lease: Lease, left: number): Promise<unknown> {
    try {
      await lease.extend(left)
      return undefined
    } catch (error) {
      if (lease.signal.aborted || (LeaseError.is(error) && error.code === 'LEASE_LOST')) return lease.signal.reason
      this.#output.warn('not_kept', `${lease.name} is kept for its ttl only: ${text(error)}`, { name: lease.name })
      return undefined
    }
  }
}

/** The command has ended: a signal, or the loss of the lease, ends the wait. */
async function stay(lease: Lease, delay: number, signals: Signals): Promise<void> {
  const told = new AbortController()
  signals.forward(() => told.abort())
  await sleep(delay, undefined, { signal: AbortSignal.any([told.signal, lease.signal]) }).catch(() => {})
}
