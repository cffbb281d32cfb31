import { setTimeout as pause } from 'node:timers/promises'
import { type Lease, LeaseError, type Locks, type Permit, subscribe } from '../../src/index.ts'
import { between, type Random } from '../faults/random.ts'
import type { Recorder } from '../judge/history.ts'
import type { Shared } from '../judge/shared.ts'
import { jobOf, marksOf } from './job.ts'
import type { Times } from './times.ts'
import type { Writer } from './writer.ts'

/** What a contender gets from its process. */
export interface Setting {
  readonly client: number
  readonly name: string
  /** How clients share the name; `undefined` for leases. */
  readonly shared: Shared | undefined
  /** Milliseconds. */
  readonly ttl: number
  readonly locks: Locks
  readonly history: Recorder
  readonly writer: Writer
  readonly random: Random
  /** The next number of an acquisition, write or request, unique in the run. */
  readonly next: () => number
  /** When granted requests left. */
  readonly sent: Times
  readonly stop: AbortSignal
  /** The shortest pause after a lease, in milliseconds. */
  readonly pace: number
  /** Is no lease of the name short, so that a waiter that comes too late finds it held? */
  readonly busy: boolean
}

/** Milliseconds after a failed attempt. */
const REST = 100

/**
 * Acquires one name, or a part of a shared one, again and again, writes while it believes to hold it, and records all
 * that it sees. Like a careless program, it checks whether it holds the name, does something else, and then writes.
 */
export class Contender {
  readonly #setting: Setting
  #op = 0

  constructor(setting: Setting) {
    this.#setting = setting
  }

  /** Runs until `stop`, and releases its lease. */
  async run(): Promise<void> {
    const { client, name, shared, ttl, locks, history, random, next, stop, pace } = this.#setting
    while (!stop.aborted) {
      this.#op = next()
      const op = this.#op
      const job = jobOf(locks, name, shared, ttl, random)
      const asked = history.now()
      history.write('asked', { client, name, op }, asked)
      let lease: Lease
      try {
        lease = await job.acquire(stop)
      } catch (error) {
        const code = LeaseError.is(error) ? error.code : 'STOPPED'
        history.write('failed', { client, name, op, code })
        if (!stop.aborted && !LeaseError.is(error)) throw error
        await this.#rest(code === 'BUSY' ? 0 : REST)
        continue
      }
      const at = history.now()
      const sent = this.#setting.sent.get(lease.name, lease.token) ?? asked
      const token = lease.token.toString()
      const slots = marksOf(lease)
      const shown = job.role ? { role: job.role, ...(slots && { slots }) } : {}
      history.write('granted', { client, name, op, token, asked: Math.max(asked, sent), ...shown }, at)
      await this.#hold(lease, op)
      await this.#rest(Math.max(pace, between(random, 0, 0.02 * ttl)))
    }
  }

  async #hold(lease: Lease, op: number): Promise<void> {
    const { client, name, history } = this.#setting
    const lost = (): void => {
      const { reason } = lease.signal
      const text = LeaseError.is(reason) ? reason.code : String(reason)
      history.write('lost', { client, name, op, reason: text })
    }
    lease.signal.addEventListener('abort', lost, { once: true })
    const ignore = subscribe('heartbeat', event => event.lease === lease && this.#check(lease, op))
    await this.#work(lease, op)
    ignore()
    history.write('releasing', { client, name, op })
    history.write('released', { client, name, op, outcome: await lease.release() })
  }

  /** Most leases are short, so that the holder changes often. The others must be renewed. */
  async #work(lease: Lease, op: number): Promise<void> {
    const { ttl, history, random, stop, busy } = this.#setting
    const step = ttl / 30
    const length = (): number => {
      if (busy) return between(random, 0.3, 0.5)
      return random() < 0.7 ? between(random, 0, 0.1) : between(random, 0.3, 1.5)
    }
    const end = history.now() + ttl * length()
    do {
      if (!this.#check(lease, op)) return
      if ((await this.#write(lease, op, between(random, 0, step))) === 'refused') return
      await this.#rest(between(random, 0, step))
    } while (history.now() < end && !stop.aborted)
  }

  /** False if the lease is lost. The event was true at its time, however late it is written. */
  #check(lease: Lease, op: number): boolean {
    const { client, name, history } = this.#setting
    const at = history.now()
    try {
      lease.assertHeld()
    } catch {
      return false
    }
    history.write('believed', { client, name, op, until: at + lease.remaining }, at)
    return true
  }

  async #write(lease: Lease, op: number, hesitation: number): Promise<'wrote' | 'refused' | 'unsure'> {
    const { client, name, history, writer, next } = this.#setting
    const token = lease.token.toString()
    const write = next()
    history.write('writing', { client, name, op, token, write })
    await pause(hesitation)
    const slots = 'slots' in lease ? (lease as Permit).slots : undefined
    const kind = await writer.write({ name, write, shown: { resource: lease.name, token, slots } })
    history.write(kind, { client, name, op, write })
    return kind
  }

  /** Ends early on `stop`. */
  async #rest(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#setting.stop }).catch(() => {})
  }
}
