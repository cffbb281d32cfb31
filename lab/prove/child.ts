import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../servers/folder.ts'

/**
 * A process of this program, in a group of its own, so that Ctrl-C in the terminal is not for it. It dies with this one,
 * even by SIGKILL and even while it is stopped.
 */
export class Child {
  readonly #process: ChildProcess
  readonly #folder: string
  /** Settles when it has ended and nothing of it is left; to `undefined` if it was to end, else to what it wrote. */
  readonly ended: Promise<string>

  /** `entry`: `client` or `resource`. */
  constructor(entry: 'client' | 'resource', env: Readonly<Record<string, string>> = {}) {
    this.#folder = newFolder(entry)
    const output = join(this.#folder, 'output')
    const file = openSync(output, 'a')
    this.#process = fork(pathOf(entry), [], {
      detached: true,
      stdio: ['ignore', file, file, 'ipc'],
      env: { ...process.env, ...env },
      // What this process was started with may not be for it; what makes Node run TypeScript is.
      execArgv: process.execArgv.filter(option => /strip-types|disable-warning/.test(option)),
    })
    closeSync(file)
    this.#process.on('error', () => {})
    if (this.#process.pid) writeFileSync(join(this.#folder, 'pid'), String(this.#process.pid))
    this.ended = once(this.#process, 'exit').then(() => {
      const text = readFileSync(output, 'utf8')
      rmSync(this.#folder, { recursive: true, force: true })
      return text
    })
  }

  /** Throws if it could not be started. */
  get pid(): number {
    const { pid } = this.#process
    if (pid === undefined) throw new Error('a process could not be started')
    return pid
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** The exit code; `null` while it runs, and when a signal ended it. */
  get exitCode(): number | null {
    return this.#process.exitCode
  }

  send(message: object): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }

  /** What it says next. Rejects with its output if it ends before. */
  async answer(): Promise<unknown> {
    const over = new AbortController()
    try {
      const message = once(this.#process, 'message', { signal: over.signal })
      const ended = this.ended.then(output => {
        throw new Error(`a process of the run ended too early: ${output.trim() || 'it said nothing'}`)
      })
      const [answer] = (await Promise.race([message, ended])) as unknown[]
      return answer
    } finally {
      over.abort()
    }
  }

  /** Does nothing if it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#process.kill(signal)
  }

  /** SIGKILL, and waits for its end. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }
}

/** Beside this file in the sources; in the package this file is part of one at the top of `dist`. */
function pathOf(entry: string): string {
  const path = import.meta.url.endsWith('.ts') ? `./${entry}.ts` : `./prove/${entry}.js`
  return fileURLToPath(new URL(path, import.meta.url))
}
