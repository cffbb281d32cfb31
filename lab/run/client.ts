import { setTimeout as pause } from 'node:timers/promises'
import type { Opening } from '../engines/opening.ts'
import type { FaultyClient } from '../faults/client-faults.ts'
import type { Recorder } from '../judge/history.ts'
import { stateOf } from '../servers/process.ts'
import { until } from '../servers/until.ts'
import { Child } from './child.ts'
import type { ClientMessage, ClientTask } from './client-process.ts'

/** What all clients of a run have in common. */
export type CommonTask = Omit<ClientTask, 'client' | 'first' | 'opening'>

export interface ClientSetting {
  readonly opening: Opening
  /** Environment variables, in addition to those of this process. */
  readonly env: Readonly<Record<string, string>>
}

/** How many numbers each process has for its acquisitions and writes. */
const NUMBERS = 10_000_000

/** How long a client has to release its leases at the end of a run, in milliseconds. */
const LAST = 5_000

let processes = 0

/** A client of a run: one process after the other. */
export class Client implements FaultyClient {
  readonly number: number
  readonly #setting: ClientSetting
  readonly #task: CommonTask
  readonly #history: Recorder
  readonly #failed: (error: Error) => void
  #child: Child | undefined
  /** The last process that died. */
  #dead = 0
  #mayEnd = false

  /** `failed` is called if it ends by itself. */
  constructor(
    number: number,
    setting: ClientSetting,
    task: CommonTask,
    history: Recorder,
    failed: (error: Error) => void,
  ) {
    this.number = number
    this.#setting = setting
    this.#task = task
    this.#history = history
    this.#failed = failed
  }

  /** Resolves when it has opened its store. */
  async start(): Promise<void> {
    this.#mayEnd = false
    const child = new Child('client-process', this.#setting.env)
    this.#child = child
    const { number: client } = this
    const { pid } = child
    const first = NUMBERS * ++processes
    const task: ClientTask = { client, first, opening: this.#setting.opening, ...this.#task }
    child.send(task)
    this.#history.write('started', { client, pid })
    void child.ended.then(output => {
      this.#died(pid)
      if (!this.#mayEnd) this.#failed(new Error(`client ${client} ended by itself: ${output.trim() || 'no output'}`))
    })
    await child.answer()
  }

  /** Resolves when it is stopped. */
  async pause(): Promise<void> {
    const child = this.#child
    if (!child?.isRunning) return
    child.signal('SIGSTOP')
    await until(`client ${this.number} is stopped`, () => stateOf(child.pid) === 'T', { every: 1 })
  }

  resume(): void {
    this.#child?.signal('SIGCONT')
  }

  block(ms: number): void {
    this.#send({ block: ms })
  }

  blockAtGrant(ms: number, within: number): void {
    this.#send({ blockAtGrant: ms, within })
  }

  run(speed: number): void {
    this.#send({ speed })
  }

  async kill(): Promise<void> {
    this.#mayEnd = true
    // Its sessions end before this process learns of its end: by tens of milliseconds on a busy machine.
    if (this.#child?.isRunning) this.#died(this.#child.pid)
    await this.#child?.kill()
  }

  /** Lets it release its leases, and kills it if that takes too long. */
  async stop(): Promise<void> {
    this.#mayEnd = true
    this.resume()
    this.#send({ stop: true })
    const late = new AbortController()
    const limit = pause(LAST, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([this.#child?.ended, limit])
    late.abort()
    await this.kill()
  }

  #died(pid: number): void {
    if (pid === this.#dead) return
    this.#dead = pid
    this.#history.write('died', { client: this.number, pid })
  }

  #send(message: ClientMessage): void {
    this.#child?.send(message)
  }
}
