import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Binary, findBinary, type Generation } from './binary.ts'
import { newFolder } from './folder.ts'
import { type Port, reservePort } from './port.ts'
import { until } from './until.ts'

/** The port and folder of a server. It keeps them while it is down. */
export interface Place {
  readonly port: Port
  readonly folder: string
}

export async function newPlace(name: string, parent?: string): Promise<Place> {
  return { port: await reservePort(), folder: newFolder(name, parent) }
}

export interface Command {
  readonly binary: string
  /** The package to install if the binary is missing. */
  readonly debianPackage: string
  /** @default the chosen one */
  readonly generation?: Generation | undefined
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>> | undefined
  /** The user that it runs as. @default the user of this process */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * A real server as a child process, with its own port of 127.0.0.1 and a temporary folder. It dies with this process, even
 * by SIGKILL. A subclass adds the command and the check whether it serves.
 */
export abstract class ServerProcess implements AsyncDisposable {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly folder: string
  readonly #place: Place
  #child: ChildProcess | undefined

  constructor(place: Place) {
    this.#place = place
    this.port = place.port.number
    this.folder = place.folder
  }

  protected abstract command(): Command

  /** True once the server serves. It is polled, and may throw before. */
  protected abstract isReady(): Promise<boolean>

  /** The id of its process and process group. Throws while the server is down. */
  get pid(): number {
    if (!this.#child?.pid || !this.isRunning) throw new Error(`the server on port ${this.port} is not running`)
    return this.#child.pid
  }

  /** Also true while it is paused. */
  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Its standard output and standard error since the first start. */
  get output(): string {
    return existsSync(this.#outputPath) ? readFileSync(this.#outputPath, 'utf8') : ''
  }

  /** Resolves when the server serves. Otherwise, after 60 s at most, removes everything and throws its output. */
  async start(): Promise<void> {
    try {
      const child = this.#spawn()
      await until(
        `${child.spawnfile} serves on port ${this.port}`,
        async () => !this.isRunning || (await this.isReady()),
        { limit: 60_000 },
      )
      if (!this.isRunning) throw new Error(`${child.spawnfile} ended with ${child.exitCode ?? child.signalCode}`)
    } catch (error) {
      const output = this.output.slice(-2_000)
      await this.stop()
      if (!output) throw error
      throw new Error(`${(error as Error).message}; its last output:\n${output}`, { cause: error })
    }
  }

  /** Kills it, removes its folder and frees its port. May be called twice. */
  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
    await this.#place.port.release()
  }

  /** Sends the signal, by default SIGKILL, and waits for its end. Keeps the folder and the port. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.#child || !this.isRunning) return
    const exit = once(this.#child, 'exit')
    process.kill(-this.pid, signal)
    await exit
  }

  /** Pauses it by SIGSTOP. Resolves when it is stopped. Requests wait in the sockets meanwhile. */
  async pause(): Promise<void> {
    const { pid } = this
    process.kill(-pid, 'SIGSTOP')
    await until(`process ${pid} is stopped`, () => stateOf(pid) === 'T', { every: 1 })
  }

  /** Resumes it by SIGCONT. */
  resume(): void {
    process.kill(-this.pid, 'SIGCONT')
  }

  /** Kills it if it runs, and starts it again on the same port and folder. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  get #outputPath(): string {
    return join(this.folder, 'output')
  }

  #spawn(): ChildProcess {
    const { binary, debianPackage, generation, args, env, user } = this.command()
    const found: Binary = findBinary(binary, debianPackage, generation)
    const output = openSync(this.#outputPath, 'a')
    const child = spawn(found.path, args, {
      cwd: this.folder,
      env: { ...process.env, ...found.env, ...env },
      // In its own group, so that Ctrl-C does not reach it and its children get its signals.
      detached: true,
      stdio: ['ignore', output, output],
      ...user,
    })
    closeSync(output)
    this.#child = child
    child.on('error', () => {})
    if (child.pid) {
      const pidPath = join(this.folder, 'pid')
      writeFileSync(pidPath, String(child.pid))
      child.once('exit', () => rmSync(pidPath, { force: true }))
    }
    return child
  }
}

/** The state letter of proc(5), such as `T` for stopped and `Z` for a zombie. The name before it may have brackets. */
export function stateOf(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]
}
