import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stateOf } from '../../../../lab/servers/process.ts'
import { until } from '../../../../lab/servers/until.ts'

const flags = process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']

/** Another process, which reports by lines. */
export class Child implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(file: URL, ...args: string[]) {
    const child = spawn(process.execPath, [...flags, fileURLToPath(file), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines: Interface = createInterface({ input: child.stdout })
    this.#process = child
    this.#lines = lines[Symbol.asyncIterator]()
  }

  /** Its next line. */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the process ended')
    return value
  }

  tell(text: string): void {
    this.#process.stdin?.write(`${text}\n`)
  }

  async pause(): Promise<void> {
    this.#process.kill('SIGSTOP')
    await until('it stands still', () => stateOf(this.#process.pid ?? 0) === 'T')
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exit
  }
}
