import { type ChildProcess, spawn } from 'node:child_process'
import { endGroup, signalGroup } from './process-group.ts'

/**
 * The process between the wrapper and the command. It starts the command, so that the command never lives unwatched,
 * and ends it before the lease can pass on, also when the wrapper is killed or stopped: it acts on the last deadline
 * that it was told. It lives in a session of its own, so that nothing sent to the wrapper's group or terminal hits it.
 */

/** A moment in milliseconds by two clocks: a suspended machine stops the first, somebody may set back the second. */
export interface Moment {
  /** CLOCK_MONOTONIC, which the processes of one machine share. */
  readonly monotonic: number
  readonly wall: number
}

/** What the wrapper asks for first. */
export interface Start {
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly deadline: Moment
  /** What becomes of the command when the lease ends before it does. */
  readonly onLost: 'kill' | 'term' | 'ignore'
  /** Milliseconds before the deadline at which SIGTERM is sent, and between SIGTERM and SIGKILL otherwise. */
  readonly grace: number
  /** Milliseconds before the deadline at which SIGKILL is sent. */
  readonly reserve: number
}

/** Why the command was ended: nobody renewed the lease, it is gone, `--max` was reached, the wrapper is dead. */
export type Reason = 'unrenewed' | 'lost' | 'max' | 'orphaned'

export type Order =
  | { readonly start: Start }
  | { readonly deadline: Moment }
  | { readonly signal: NodeJS.Signals }
  | { readonly end: 'lost' | 'max' }

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly reason?: Reason | undefined
}

export type Report =
  | { readonly pid: number }
  | { readonly failed: { readonly code: string; readonly message: string } }
  /** The command was sent its first signal for this reason. */
  | { readonly ending: Reason }
  /** A process of the group belongs to another user and cannot be signalled. */
  | { readonly denied: true }
  /** The command ended and nothing is left of its group. */
  | { readonly ended: Ending }

// Only a clock that jumped (a machine that slept) can be late by more than this; the reserve is at least 100 ms.
const TICK = 50

/** Now, by both clocks. */
export function now(): Moment {
  const [seconds, nanoseconds] = process.hrtime()
  return { monotonic: seconds * 1e3 + nanoseconds / 1e6, wall: Date.now() }
}

// Who ends a service or closes a terminal signals every process of it. The wrapper forwards what concerns the command,
// and the supervisor has to outlive both.
const OUTLIVED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']

/** Runs in a process of its own, started by `child.ts`. */
export function supervise(): void {
  for (const signal of OUTLIVED) process.on(signal, () => {})
  let watch: Watch | undefined
  process.on('message', (order: Order) => {
    if ('start' in order) watch = new Watch(order.start)
    else watch?.obey(order)
  })
  process.on('disconnect', () => {
    if (watch) watch.orphan()
    else process.exit()
  })
}

class Watch {
  readonly #start: Start
  readonly #child: ChildProcess
  readonly #timer: NodeJS.Timeout
  #deadline: Moment
  /** Monotonic: the grace after a SIGTERM of ours ends. */
  #killAt = Number.POSITIVE_INFINITY
  #reason: Reason | undefined
  #over = false

  constructor(start: Start) {
    this.#start = start
    this.#deadline = start.deadline
    const [command = '', ...args] = start.command
    this.#child = spawn(command, args, { env: start.env, stdio: 'inherit', detached: true })
    if (this.#child.pid) report({ pid: this.#child.pid })
    this.#child.on('error', (error: NodeJS.ErrnoException) => this.#fail(error))
    this.#child.on('exit', (code, signal) => void this.#end(code, signal))
    // After a pause of the supervisor its timer runs first, while new deadlines are unread in its pipe. `setImmediate`
    // reads them before the last one is judged.
    this.#timer = setInterval(() => setImmediate(() => this.#check()), TICK)
  }

  obey(order: Exclude<Order, { readonly start: Start }>): void {
    if ('deadline' in order) this.#deadline = order.deadline
    else if ('signal' in order) this.#send(order.signal)
    else if (order.end === 'max') this.#terminate('max', true)
    else if (this.#start.onLost === 'kill') this.#kill('lost')
    else if (this.#start.onLost === 'term') this.#terminate('lost', false)
  }

  /** The wrapper is dead, and with it the heartbeat: its lease ends at the last deadline. */
  orphan(): void {
    if (this.#start.onLost !== 'ignore') this.#terminate('orphaned', this.#start.onLost === 'kill')
  }

  #check(): void {
    const { onLost, grace, reserve } = this.#start
    const { monotonic, wall } = now()
    if (this.#reason && monotonic >= this.#killAt) this.#kill(this.#reason)
    if (onLost === 'ignore') return
    const left = Math.min(this.#deadline.monotonic - monotonic, this.#deadline.wall - wall)
    if (onLost === 'kill' && left <= reserve) this.#kill('unrenewed')
    else if (left <= Math.max(grace, reserve)) this.#terminate('unrenewed', onLost === 'kill')
  }

  #terminate(reason: Reason, thenKill: boolean): void {
    if (this.#reason || this.#over) return
    this.#because(reason)
    if (thenKill) this.#killAt = now().monotonic + this.#start.grace
    this.#send('SIGTERM')
  }

  #kill(reason: Reason): void {
    if (this.#over) return
    this.#because(reason)
    this.#send('SIGKILL')
  }

  #because(reason: Reason): void {
    if (this.#reason) return
    this.#reason = reason
    report({ ending: reason })
  }

  #send(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (!pid || this.#over) return
    if (signalGroup(pid, signal) === 'denied') report({ denied: true })
  }

  #fail(error: NodeJS.ErrnoException): void {
    clearInterval(this.#timer)
    report({ failed: { code: error.code ?? 'UNKNOWN', message: error.message } })
    leave()
  }

  async #end(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#over = true
    clearInterval(this.#timer)
    if ((await endGroup(this.#child.pid as number)) === 'denied') report({ denied: true })
    report({ ended: { code, signal, reason: this.#reason } })
    leave()
  }
}

function report(message: Report): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {})
}

/** Reports that are under way are still delivered. */
function leave(): void {
  if (process.connected) process.disconnect()
}
