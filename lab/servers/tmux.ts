import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findBinary } from './binary.ts'
import { newFolder } from './folder.ts'
import { until } from './until.ts'

const run = promisify(execFile)

/** For characters beyond ASCII, and not within another terminal of tmux. */
const LOCALE = { LC_ALL: 'C.UTF-8', TMUX: '' }

/** The last line of a shell that waits for a command, of root or of another user. */
export const PROMPT: RegExp = /\n?[$#]\s*$/

export interface TmuxOptions {
  readonly columns?: number
  readonly rows?: number
  /** Environment variables of the shell. */
  readonly env?: Readonly<Record<string, string>>
  /** The folder of the shell. */
  readonly cwd?: string
}

/** A terminal with a shell, as a person would use it. */
export async function startTmux(options: TmuxOptions = {}): Promise<Tmux> {
  const tmux = new Tmux(options)
  try {
    await tmux.start()
    return tmux
  } catch (error) {
    await tmux[Symbol.asyncDispose]()
    throw error
  }
}

/** A terminal whose screen can be read. */
export class Tmux implements AsyncDisposable {
  readonly #folder = newFolder('tmux')
  readonly #binary = findBinary('tmux', 'tmux')
  readonly #options: TmuxOptions
  #client: ChildProcess | undefined

  constructor(options: TmuxOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { columns = 80, rows = 24, env = {}, cwd } = this.#options
    const { path, env: libraries } = this.#binary
    const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
    // A client in control mode ends with this process, even by SIGKILL. Then nobody is attached, which ends the terminal.
    const session = ['-C', 'new-session', ...(cwd ? ['-c', cwd] : []), ...variables, 'sh']
    this.#client = spawn(path, [...this.#common(), '-f', '/dev/null', ...session], {
      env: { ...process.env, ...libraries, ...LOCALE },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    await until('the terminal is there', () => this.call('set-option', 'destroy-unattached', 'on').then(() => true))
    await this.call('set-option', '-g', 'window-size', 'manual')
    await this.resize(columns, rows)
    await this.shows(PROMPT)
  }

  /** Runs a command of tmux. */
  async call(...args: readonly string[]): Promise<string> {
    const { path, env } = this.#binary
    const { stdout } = await run(path, [...this.#common(), ...args], { env: { ...process.env, ...env, ...LOCALE } })
    return stdout
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.call('resize-window', '-x', `${columns}`, '-y', `${rows}`)
  }

  /** Presses these keys: text, or names such as `Enter`, `Escape`, `C-c`. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.call('send-keys', ...keys)
  }

  /** The lines of the screen, without spaces at their ends. */
  async lines(): Promise<string[]> {
    return (await this.call('capture-pane', '-p')).split('\n').map(line => line.trimEnd())
  }

  /** Resolves to the screen once it has the text, within `limit` ms. */
  async shows(text: string | RegExp, limit = 20_000): Promise<string> {
    let screen = ''
    const isShown = async (): Promise<boolean> => {
      screen = (await this.lines()).join('\n')
      return typeof text === 'string' ? screen.includes(text) : text.test(screen)
    }
    await until(`the screen shows ${text}`, isShown, { limit, every: 50 }).catch(error => {
      throw new Error(`${error.message}; it shows:\n${screen}`)
    })
    return screen
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.call('kill-server').catch(() => {}) // it ends with its shell
    this.#client?.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #common(): string[] {
    return ['-u', '-S', join(this.#folder, 'socket')]
  }
}
