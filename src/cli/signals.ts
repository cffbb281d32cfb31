import { constants } from 'node:os'
import { EXIT, Failure } from './failure.ts'

/** SIGUSR1 and SIGUSR2 mean something to the command only. */
const STOPPING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
const MEANT_FOR_COMMAND = ['SIGUSR1', 'SIGUSR2'] as const

/** What this process is told by signals: to stop waiting, until the command runs; while it runs all are the command's. */
export class Signals {
  readonly #stop = new AbortController()
  #forward: ((signal: NodeJS.Signals) => void) | undefined
  #received = false

  /** `when` ends the sentence that says what was stopped. */
  constructor(when = 'before the command ran') {
    for (const signal of STOPPING) {
      process.on(signal, () => {
        this.#received = true
        if (this.#forward) this.#forward(signal)
        else this.#stop.abort(stopped(signal, when))
      })
    }
    for (const signal of MEANT_FOR_COMMAND) process.on(signal, () => this.#forward?.(signal))
  }

  /** Aborts with a `Failure` of exit code 128 + n. */
  get stop(): AbortSignal {
    return this.#stop.signal
  }

  /** Was there one that means the end, for whomever? */
  get received(): boolean {
    return this.#received
  }

  /** From now on to the command; `undefined`: it has ended. */
  forward(to: ((signal: NodeJS.Signals) => void) | undefined): void {
    this.#forward = to
  }
}

function stopped(signal: NodeJS.Signals, when: string): Failure {
  return new Failure(signalExit(signal), 'STOPPED', `stopped by ${signal} ${when}`)
}

/** As a shell reports a death by signal. */
export function signalExit(signal: NodeJS.Signals): number {
  return EXIT.signal + constants.signals[signal]
}
