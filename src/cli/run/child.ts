import { type ChildProcess, fork } from 'node:child_process'
import type { Held } from './held.ts'
import { endGroup } from './process-group.ts'
import { type Ended, now, type Reason, type Report, type Request, type Start, type Timestamp } from './supervisor.ts'

/** Receives events of the command while it runs. */
export interface Listener {
  /** Called when the supervisor begins to end the command. */
  ending(reason: Reason): void
  /** Called when a process of the command belongs to another user and cannot be ended. */
  denied(): void
}

/**
 * The command ended, could not be started, was not started without a lease, or was ended with its supervisor. It cannot be ended
 * if it belongs to another user, or if the supervisor was killed before it told which process it is.
 */
export type Outcome =
  | { ended: Ended }
  | { failed: { code: string; message: string } }
  | { refused: true }
  | { supervisorKilled: true; isEnded: boolean }

/** Milliseconds within which the supervisor kills a command whose lease is lost. If it does not, it is paused. */
const TIME_TO_KILL = 100

/** Controls the command through its supervisor. */
export class Child {
  /** Resolves when no process of the command's group is left. Never rejects. */
  readonly outcome: Promise<Outcome>
  readonly #supervisor: ChildProcess
  readonly #onLost: Start['onLost']
  readonly #listener: Listener
  #pid: number | undefined
  #isOver = false
  #isDenied = false

  /** `name` is shown in lists of processes. */
  constructor(name: string, start: Start, listener: Listener) {
    // Fork the entry of this program: its path is right both from source and bundled.
    const { NODE_OPTIONS: _slow, ...env } = process.env
    this.#supervisor = fork(process.argv[1] as string, ['supervise', name], {
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env,
      execArgv: process.execArgv.filter(option => !option.startsWith('--inspect')),
    })
    this.#onLost = start.onLost
    this.#listener = listener
    this.outcome = this.#follow()
    this.#send({ start })
  }

  deadline(deadline: Timestamp): void {
    this.#send({ deadline })
  }

  signal(signal: NodeJS.Signals): void {
    this.#send({ signal })
  }

  end(reason: 'lost' | 'max'): void {
    this.#send({ end: reason })
    if (reason === 'lost' && this.#onLost === 'kill') setTimeout(() => void this.#kill(), TIME_TO_KILL)
  }

  /** Kills the command, and then its supervisor, which would say that it ended. */
  async #kill(): Promise<void> {
    if (this.#isOver || !this.#pid) return // a supervisor that has started no command will start none
    if ((await endGroup(this.#pid)) === 'denied') this.#deny()
    else if (!this.#isOver) this.#supervisor.kill('SIGKILL')
  }

  #deny(): void {
    if (!this.#isDenied) this.#listener.denied()
    this.#isDenied = true
  }

  #follow(): Promise<Outcome> {
    return new Promise(resolve => {
      this.#supervisor.on('message', (report: Report) => {
        if ('pid' in report) this.#pid = report.pid
        else if ('ending' in report) this.#listener.ending(report.ending)
        else if ('denied' in report) this.#deny()
        else {
          this.#isOver = true
          this.#supervisor.unref()
          resolve(report)
        }
      })
      // Normally this follows the last report. Without one, the supervisor was killed.
      const onDisconnect = async () => {
        if (this.#isOver) return
        const isEnded = this.#pid !== undefined && (await endGroup(this.#pid)) === 'gone'
        if (this.#pid && !isEnded) this.#deny()
        resolve({ supervisorKilled: true, isEnded })
      }
      this.#supervisor.on('disconnect', () => void onDisconnect())
      this.#supervisor.on('error', error => resolve({ failed: { code: 'SUPERVISOR', message: error.message } }))
    })
  }

  #send(request: Request): void {
    // If the supervisor is gone, the disconnect handler ends the command.
    if (this.#supervisor.connected) this.#supervisor.send(request, () => {})
  }
}

/**
 * The time at which the lease ends. Reads the clocks before the lease: if this process is paused in between, the deadline
 * is too early, never too late.
 */
export function deadlineOf(lease: Held): Timestamp {
  const { monotonic, wall } = now()
  const { remaining } = lease
  return { monotonic: monotonic + remaining, wall: wall + remaining }
}
