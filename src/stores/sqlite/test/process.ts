import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Deeds } from './worker.ts'

type Own<Deed> = Deed extends (...args: [...infer Args, AbortSignal]) => infer Answer ? (...args: Args) => Answer : Deed

/** Another process with a store on the same file. */
export class StoreProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #calls = new Map<number, { resolve(answer: unknown): void; reject(error: unknown): void }>()
  #count = 0

  constructor(path: string) {
    // Node 22.13 does not strip types by itself.
    const execArgv = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
    this.#child = fork(fileURLToPath(new URL('worker.ts', import.meta.url)), [path], {
      execArgv,
      serialization: 'advanced',
    })
    this.#child.on('message', (reply: { call: number; answer?: unknown; error?: object }) => {
      const call = this.#calls.get(reply.call)
      this.#calls.delete(reply.call)
      if (reply.error) call?.reject(Object.assign(new Error(), reply.error))
      else call?.resolve(reply.answer)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  ask<Name extends keyof Deeds>(deed: Name, ...args: Parameters<Own<Deeds[Name]>>): ReturnType<Deeds[Name]> {
    this.#count += 1
    const call = this.#count
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject })
      this.#child.send({ call, deed, args })
    }) as ReturnType<Deeds[Name]>
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }
}
