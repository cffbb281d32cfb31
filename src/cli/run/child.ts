import { type ChildProcess, fork } from 'node:child_process'
import type { Lease } from '../../index.ts'
import { endGroup } from './process-group.ts'
import { type Ending, type Moment, now, type Order, type Reason, type Report, type Start } from './supervisor.ts'

/** What the wrapper wants to hear of while the command runs. */
export interface Listener {
  /** The command was told to end. */
  ending(reason: Reason): void
  /** A process of the command belongs to another user and cannot be ended. */
  denied(): void
}

/** How it went: the command ended, could not be started, or its supervisor was killed and it with it. */
export type Outcome = { ended: Ending } | { failed: { code: string; message: string } } | { unwatched: true }

/** The wrapper's hold on the command, through the supervisor. */
export class Child {
  /** Settles when nothing is left of the command's process group. Never rejects. */
  readonly outcome: Promise<Outcome>
  readonly #supervisor: ChildProcess

  /** `name` is for those who read a list of processes. */
  constructor(name: string, start: Start, listener: Listener) {
    // The entry of this program once more: the path holds whether it runs from source or bundled.
    const { NODE_OPTIONS: _slow, ...env } = process.env
    this.#supervisor = fork(process.argv[1] as string, ['supervise', name], {
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env,
      execArgv: process.execArgv.filter(option => !option.startsWith('--inspect')),
    })
    this.outcome = this.#follow(listener)
    this.#order({ start })
  }

  deadline(moment: Moment): void {
    this.#order({ deadline: moment })
  }

  signal(signal: NodeJS.Signals): void {
    this.#order({ signal })
  }

  end(reason: 'lost' | 'max'): void {
    this.#order({ end: reason })
  }

  #follow(listener: Listener): Promise<Outcome> {
    return new Promise(resolve => {
      let pid: number | undefined
      let over = false
      this.#supervisor.on('message', (report: Report) => {
        if ('pid' in report) pid = report.pid
        else if ('ending' in report) listener.ending(report.ending)
        else if ('denied' in report) listener.denied()
        else {
          over = true
          this.#supervisor.unref()
          resolve(report)
        }
      })
      // After the last report when all is well; alone when the supervisor was killed.
      const gone = async () => {
        if (over) return
        if (pid) await endGroup(pid)
        resolve({ unwatched: true })
      }
      this.#supervisor.on('disconnect', () => void gone())
      this.#supervisor.on('error', error => resolve({ failed: { code: 'SUPERVISOR', message: error.message } }))
    })
  }

  #order(order: Order): void {
    // A supervisor that is gone is noticed by its disconnection.
    if (this.#supervisor.connected) this.#supervisor.send(order, () => {})
  }
}

/**
 * When the lease ends. The clocks are read first: a process that is stopped in between then tells too early a moment,
 * never too late a one.
 */
export function deadlineOf(lease: Lease): Moment {
  const { monotonic, wall } = now()
  const { remaining } = lease
  return { monotonic: monotonic + remaining, wall: wall + remaining }
}
