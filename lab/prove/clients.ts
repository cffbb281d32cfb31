import { setTimeout as pause } from 'node:timers/promises'
import type { Opening } from '../opening.ts'
import { stateOf } from '../servers/process.ts'
import { until } from '../servers/until.ts'
import { Child } from './child.ts'
import type { ClientMessage, ClientOrder } from './client.ts'
import type { Recorder } from './history.ts'

/** What all clients of a run are told. */
export type Task = Pick<ClientOrder, 'names' | 'ttl' | 'seed' | 'pace' | 'origin' | 'resource'> & {
  readonly history: string
}

export interface ClientSetting {
  readonly opening: Opening
  /** Of its process, in addition to that of this one. */
  readonly env: Readonly<Record<string, string>>
}

/** One process may number so many acquisitions and writes; the next process of the same client goes on after these. */
const NUMBERS = 10_000_000

/** Milliseconds that a client has to release what it holds when a run ends. */
const LAST = 5_000

let processes = 0

/** One of the clients of a run, over the processes that it is one after the other. */
export class Client {
  readonly number: number
  readonly #setting: ClientSetting
  readonly #task: Task
  readonly #history: Recorder
  readonly #failed: (error: Error) => void
  #child: Child | undefined
  #mayEnd = false

  /** `failed` is called if it ends though nobody ended it. */
  constructor(number: number, setting: ClientSetting, task: Task, history: Recorder, failed: (error: Error) => void) {
    this.number = number
    this.#setting = setting
    this.#task = task
    this.#history = history
    this.#failed = failed
  }

  /** Resolves when it has opened its store. */
  async start(): Promise<void> {
    this.#mayEnd = false
    const child = new Child('client', this.#setting.env)
    this.#child = child
    const { number: client } = this
    const { pid } = child
    const order: ClientOrder = {
      client,
      first: NUMBERS * ++processes,
      opening: this.#setting.opening,
      ...this.#task,
    }
    child.send(order)
    this.#history.write('started', { client, pid })
    void child.ended.then(output => {
      this.#history.write('died', { client, pid })
      if (!this.#mayEnd) this.#failed(new Error(`client ${client} ended by itself: ${output.trim() || 'silently'}`))
    })
    await child.answer()
  }

  /** Resolves when it stands still. */
  async pause(): Promise<void> {
    const child = this.#child
    if (!child?.isRunning) return
    child.signal('SIGSTOP')
    await until(`client ${this.number} is stopped`, () => stateOf(child.pid) === 'T', { every: 1 })
  }

  resume(): void {
    this.#child?.signal('SIGCONT')
  }

  /** Its event loop stands still for so many milliseconds. */
  block(ms: number): void {
    this.#tell({ block: ms })
  }

  async kill(): Promise<void> {
    this.#mayEnd = true
    await this.#child?.kill()
  }

  /** Lets it release what it holds, and kills it if that takes too long. */
  async stop(): Promise<void> {
    this.#mayEnd = true
    this.resume()
    this.#tell({ stop: true })
    const late = new AbortController()
    const limit = pause(LAST, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([this.#child?.ended, limit])
    late.abort()
    await this.kill()
  }

  #tell(message: ClientMessage): void {
    this.#child?.send(message)
  }
}
