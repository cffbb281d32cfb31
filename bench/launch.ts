import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { Job, Message, Values } from './worker.ts'

/** A process that measures. */
export class Worker implements AsyncDisposable {
  /** Rejects with what went wrong there. */
  readonly values: Promise<Values>
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown>
  readonly #steps: string[] = []
  #onStep = (): void => {}

  constructor(job: Job) {
    const child = fork(join(import.meta.dirname, 'worker.ts'), [JSON.stringify(job)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [...process.execArgv, '--expose-gc'],
    })
    this.#child = child
    let errors = ''
    child.stderr?.on('data', chunk => {
      errors = (errors + chunk).slice(-2_000)
    })
    this.#exit = new Promise(resolve => child.once('exit', resolve))
    const where = `${job.peer} in ${job.scenario}`
    this.values = new Promise((resolve, reject) => {
      child.on('message', (message: Message) => {
        if ('values' in message) resolve(message.values)
        else if ('failure' in message) reject(new Error(`${where}: ${message.failure}`))
        else {
          this.#steps.push(message.step)
          this.#onStep()
        }
      })
      child.once('exit', code => reject(new Error(`${where} ended with ${code}: ${errors}`)))
    })
    this.values.catch(() => {}) // whoever awaits it hears of it
  }

  /** Resolves when the worker has come as far as `step`, where it waits for `go()`. */
  reached(step: string): Promise<unknown> {
    const seen = new Promise<void>(resolve => {
      this.#onStep = () => {
        if (this.#steps.includes(step)) resolve()
      }
      this.#onStep()
    })
    return Promise.race([seen, this.values])
  }

  go(): void {
    this.#child.send('go', () => {}) // why it could not be sent, the values say
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL')
    await this.#exit
  }
}
