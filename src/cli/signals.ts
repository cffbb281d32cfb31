import { constants } from 'node:os'
import { EXIT, Failure } from './failure.ts'

const STOPPING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
/** The signals that are only forwarded to the command. */
const FORWARDED = ['SIGUSR1', 'SIGUSR2'] as const

const stopping = Promise.withResolvers<void>()

/** Resolves once `Signals` has received a stopping signal. */
export const stopReceived: Promise<void> = stopping.promise

/** The signals of this process. While the command runs they are forwarded to it; otherwise they stop `holdfast`. */
export class Signals {
  readonly #stop = new AbortController()
  #forward: ((signal: NodeJS.Signals) => void) | undefined
  #received = false

  /** `when`: the end of the message, such as `before the command ran`. */
  constructor(when = 'before the command ran') {
    for (const signal of STOPPING) {
      process.on(signal, () => {
        this.#received = true
        stopping.resolve()
        if (this.#forward) this.#forward(signal)
        else this.#stop.abort(stopped(signal, when))
      })
    }
    for (const signal of FORWARDED) process.on(signal, () => this.#forward?.(signal))
  }

  /** Aborts with a `Failure` of exit code 128 + n. */
  get stop(): AbortSignal {
    return this.#stop.signal
  }

  /** Was a stopping signal received? It counts even if it was forwarded. */
  get received(): boolean {
    return this.#received
  }

  /** Forwards signals from now on. `undefined`: the command has ended, so nothing is forwarded. */
  forward(to: ((signal: NodeJS.Signals) => void) | undefined): void {
    this.#forward = to
  }
}

function stopped(signal: NodeJS.Signals, when: string): Failure {
  return new Failure(signalExit(signal), 'STOPPED', `stopped by ${signal} ${when}`)
}

/** The exit code that a shell reports for a signal: 128 + n. */
export function signalExit(signal: NodeJS.Signals): number {
  return EXIT.signal + constants.signals[signal]
}
