import { type ChildProcess, spawn } from 'node:child_process'
import { endGroup, signalGroup } from './process-group.ts'

/**
 * The process between `holdfast` and the command. It starts the command, so the command never runs without it. It ends the
 * command by the last deadline that it received, also when `holdfast` is killed or paused. It has its own session, so
 * signals to the process group or the terminal of `holdfast` do not reach it.
 */

/** The same point in time by two clocks, in milliseconds. Sleep of the machine stops the first; the second can be set. */
export interface Timestamp {
  /** CLOCK_MONOTONIC, which the processes of one machine share. */
  readonly monotonic: number
  readonly wall: number
}

/** The first request of `holdfast`. */
export interface Start {
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly deadline: Timestamp
  /** What to do with the command when the lease is lost. */
  readonly onLost: 'kill' | 'term' | 'ignore'
  /** Milliseconds from SIGTERM to the deadline, or to SIGKILL if the command is ended for another reason. */
  readonly grace: number
  /** Milliseconds from SIGKILL to the deadline. */
  readonly reserve: number
}

/** Why the command was ended: the lease was not renewed or was lost, `--max` was reached, or `holdfast` is dead. */
export type Reason = 'unrenewed' | 'lost' | 'max' | 'orphaned'

export type Request =
  | { readonly start: Start }
  | { readonly deadline: Timestamp }
  | { readonly signal: NodeJS.Signals }
  | { readonly end: 'lost' | 'max' }

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly reason?: Reason | undefined
}

export type Report =
  | { readonly pid: number }
  | { readonly failed: { readonly code: string; readonly message: string } }
  /** The command was not started, because its lease had ended, or too little of it was left. */
  | { readonly refused: true }
  /** The command was sent its first signal for this reason. */
  | { readonly ending: Reason }
  /** A process of the group belongs to another user and cannot be signalled. */
  | { readonly denied: true }
  /** The command ended and no process of its group is left. */
  | { readonly ended: Ended }

// Only a clock jump (a machine that slept) can make a check later than this. The reserve is at least 100 ms.
const TICK = 50

/** The current time by both clocks. */
export function now(): Timestamp {
  const [seconds, nanoseconds] = process.hrtime()
  return { monotonic: seconds * 1e3 + nanoseconds / 1e6, wall: Date.now() }
}

// A service manager or a closing terminal signals every process. `holdfast` forwards signals to the command, and the
// supervisor must outlive both.
const IGNORED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']

/** Runs in its own process, which `child.ts` starts. */
export function supervise(): void {
  for (const signal of IGNORED) process.on(signal, () => {})
  let command: SupervisedCommand | undefined
  const waiting: Request[] = []
  const begin = (): void => {
    command = commandOf(waiting)
    for (const request of waiting) command?.handle(request)
  }
  process.on('message', (request: Request) => {
    if (command) command.handle(request)
    // This process may have started slowly. The second `setImmediate` runs when all that was sent meanwhile is read, such
    // as a later deadline or the loss of the lease.
    else if (waiting.push(request) === 1) setImmediate(() => setImmediate(begin))
  })
  process.on('disconnect', () => {
    if (command) command.orphan()
    else process.exit()
  })
}

/** Starts the command of the first request, unless the others say that its lease has ended. */
function commandOf([first, ...others]: readonly Request[]): SupervisedCommand | undefined {
  if (!first || !('start' in first)) return undefined
  const { start } = first
  const deadline = others.findLast(request => 'deadline' in request)?.deadline ?? start.deadline
  const isLost = others.some(request => 'end' in request && request.end === 'lost')
  const least = start.onLost === 'kill' ? start.reserve : 0 // with less it would be killed at once
  if (start.onLost !== 'ignore' && (isLost || left(deadline) <= least)) {
    report({ refused: true })
    disconnect()
    return undefined
  }
  const [command = '', ...args] = start.command
  let child: ChildProcess
  try {
    child = spawn(command, args, { env: start.env, stdio: 'inherit', detached: true })
  } catch (error) {
    // Node throws some errors, such as ENOTDIR, and emits others, such as ENOENT.
    fail(error as NodeJS.ErrnoException)
    return undefined
  }
  return new SupervisedCommand(start, deadline, child)
}

class SupervisedCommand {
  readonly #start: Start
  readonly #child: ChildProcess
  readonly #timer: NodeJS.Timeout
  #deadline: Timestamp
  /** The time at which the grace after our SIGTERM ends, by the monotonic clock. */
  #killAt = Number.POSITIVE_INFINITY
  #reason: Reason | undefined
  #isOver = false

  constructor(start: Start, deadline: Timestamp, child: ChildProcess) {
    this.#start = start
    this.#deadline = deadline
    this.#child = child
    if (this.#child.pid) report({ pid: this.#child.pid })
    this.#child.on('error', (error: NodeJS.ErrnoException) => this.#fail(error))
    this.#child.on('exit', (code, signal) => void this.#end(code, signal))
    // After a pause of the supervisor its timer fires before it reads new deadlines from the pipe. `setImmediate` reads
    // them before the check.
    const check = (): void => void setImmediate(() => this.#check())
    this.#timer = setInterval(check, TICK)
    check() // the machine may have taken long to start the process
  }

  handle(request: Request): void {
    if ('start' in request) return
    if ('deadline' in request) this.#deadline = request.deadline
    else if ('signal' in request) this.#send(request.signal)
    else if (request.end === 'max') this.#terminate('max', true)
    else if (this.#start.onLost === 'kill') this.#kill('lost')
    else if (this.#start.onLost === 'term') this.#terminate('lost', false)
  }

  /** Called when `holdfast` is dead and no longer renews: the lease ends at the last deadline. */
  orphan(): void {
    if (this.#start.onLost !== 'ignore') this.#terminate('orphaned', this.#start.onLost === 'kill')
  }

  #check(): void {
    const { onLost, grace, reserve } = this.#start
    if (this.#reason && now().monotonic >= this.#killAt) this.#kill(this.#reason)
    if (onLost === 'ignore') return
    const remaining = left(this.#deadline)
    if (onLost === 'kill' && remaining <= reserve) this.#kill('unrenewed')
    else if (remaining <= Math.max(grace, reserve)) this.#terminate('unrenewed', onLost === 'kill')
  }

  #terminate(reason: Reason, thenKill: boolean): void {
    if (this.#isOver) return
    // This also applies after an earlier reason: a command that ignores the SIGTERM of a loss must still end by `--max`.
    if (thenKill) this.#killAt = Math.min(this.#killAt, now().monotonic + this.#start.grace)
    if (this.#reason) return
    this.#reportEnding(reason)
    this.#send('SIGTERM')
  }

  #kill(reason: Reason): void {
    if (this.#isOver) return
    this.#reportEnding(reason)
    this.#send('SIGKILL')
  }

  #reportEnding(reason: Reason): void {
    if (this.#reason) return
    this.#reason = reason
    report({ ending: reason })
  }

  #send(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (!pid || this.#isOver) return
    if (signalGroup(pid, signal) === 'denied') report({ denied: true })
  }

  #fail(error: NodeJS.ErrnoException): void {
    clearInterval(this.#timer)
    fail(error)
  }

  async #end(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#isOver = true
    clearInterval(this.#timer)
    await endGroup(this.#child.pid as number, () => report({ denied: true }))
    report({ ended: { code, signal, reason: this.#reason } })
    disconnect()
  }
}

/** Milliseconds until a deadline, by the clock that reaches it first. */
function left(deadline: Timestamp): number {
  const { monotonic, wall } = now()
  return Math.min(deadline.monotonic - monotonic, deadline.wall - wall)
}

/** Reports that the command could not be started. */
function fail(error: NodeJS.ErrnoException): void {
  report({ failed: { code: error.code ?? 'UNKNOWN', message: error.message } })
  disconnect()
}

function report(message: Report): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {})
}

/** Disconnects. Reports that were sent before are still delivered. */
function disconnect(): void {
  if (process.connected) process.disconnect()
}
