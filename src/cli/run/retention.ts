import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, type Locks, subscribe } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { Usage } from '../failure.ts'
import type { Output } from '../output.ts'
import { RAN, RAN_NOTE } from '../run-marker.ts'
import type { Signals } from '../signals.ts'
import { type End, release, text } from './hold.ts'
import type { RunOptions } from './run-options.ts'

/** Milliseconds: what is shorter might be over before a slow store has answered. */
const SHORTEST = 1_000

const LONGEST_NAME = 255 // bytes

/**
 * What a run leaves behind: its name for `--at-least`, and for `--skip-if-ran-since` a lease that nobody renews on the
 * name beside it. So the store counts the time, and no clock of one machine is compared with another's.
 */
export class Kept {
  readonly #locks: Locks
  readonly #options: RunOptions
  readonly #output: Output
  readonly #longest: number

  /** Throws `Usage` for what cannot be remembered. */
  constructor(locks: Locks, options: RunOptions, output: Output) {
    this.#locks = locks
    this.#options = options
    this.#output = output
    const { kind, guarantees } = locks.store
    const { longestUnattended: longest = Number.POSITIVE_INFINITY } = guarantees
    const { skipIfRanSince: since } = options
    this.#longest = longest
    if (since === undefined) return
    if (since > longest) {
      const most = `${kind} keeps a lease without its process for ${formatDuration(longest)} at most`
      throw new Usage(`--skip-if-ran-since is too long for this store: ${most}`)
    }
    const room = LONGEST_NAME - Buffer.byteLength(RAN)
    if (Buffer.byteLength(options.name) > room)
      throw new Usage(`NAME may have ${room} bytes with --skip-if-ran-since, which remembers it as NAME${RAN}`)
  }

  /** True, and said, if a run ended well lately: then, and if that cannot be found out, the lease is given back. */
  async skips(lease: Lease): Promise<boolean> {
    const { name, skipIfRanSince } = this.#options
    if (skipIfRanSince === undefined) return false
    let isKept = false
    try {
      const { holder } = await this.#locks.inspect(this.#ran)
      isKept = holder === undefined
      if (!holder) return false
      const { owner, remaining } = holder
      const message = `${name} was run by ${owner} and is not run again for ${formatDuration(remaining)}: skipped`
      this.#output.tell('skipped', message, { name, owner, remaining })
      return true
    } finally {
      if (!isKept) await release(lease, this.#output)
    }
  }

  /** How the lease is given back after a run that began just now. */
  end(signals: Signals): End {
    const until = performance.now() + this.#options.atLeast
    return async (lease, output, exit) => {
      // One that runs out from here on was held for as long as the command ran.
      let hasRunOut = false
      const stopListening = subscribe('lease_lost', event => {
        hasRunOut ||= event.lease === lease && event.reason === 'expired'
      })
      if (exit === 0) await this.#remember()
      const left = Math.ceil(until - performance.now())
      if (left >= SHORTEST && left <= this.#longest && (await leave(lease, left))) return undefined
      await stay(lease, left, signals)
      const loss = await release(lease, output)
      stopListening()
      if (!hasRunOut) return loss
      if (left > 0) output.warn('not_kept', `${lease.name} was not kept for all of --at-least: ${text(loss)}`)
      return undefined
    }
  }

  get #ran(): string {
    return this.#options.name + RAN
  }

  async #remember(): Promise<void> {
    const { name, skipIfRanSince: ttl, owner } = this.#options
    if (ttl === undefined) return
    try {
      await this.#locks.tryAcquire(this.#ran, { ttl, owner, note: RAN_NOTE, heartbeat: false })
    } catch (error) {
      this.#output.warn('not_remembered', `${name} ran, and may run again too soon: ${text(error)}`, { name })
    }
  }
}

/** Lets the lease end by itself after so long. False if it must be held, or was lost. */
async function leave(lease: Lease, delay: number): Promise<boolean> {
  try {
    await lease.extend(delay)
    return true
  } catch {
    return false
  }
}

/** The command has ended: a signal, or the loss of the lease, ends the wait. */
async function stay(lease: Lease, delay: number, signals: Signals): Promise<void> {
  if (delay <= 0 || signals.received) return
  const told = new AbortController()
  signals.forward(() => signals.received && told.abort())
  await sleep(delay, undefined, { signal: AbortSignal.any([told.signal, lease.signal]) }).catch(() => {})
}
