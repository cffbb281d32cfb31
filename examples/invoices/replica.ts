import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** A `holdfast run` as a child process, and its output. */
export class Replica {
  readonly name: string
  /** Resolves when it has ended and its output is complete: the exit code, or the signal. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** All lines so far, of `holdfast` and of the job. */
  readonly lines: string[] = []
  readonly #process: ChildProcess
  #family: number[] = []

  constructor(name: string, [command = '', ...args]: readonly string[], folder: string, env: NodeJS.ProcessEnv) {
    this.name = name
    // In its own process group, so Ctrl-C reaches only the demo, which cleans up.
    this.#process = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      let rest = ''
      stream?.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        this.lines.push(...lines)
      })
    }
    this.ended = new Promise((resolve, reject) => {
      this.#process.on('error', reject)
      this.#process.on('close', (code, signal) => resolve(code ?? (signal as NodeJS.Signals)))
    })
  }

  /** The match of the first line that matches. */
  match(pattern: RegExp): RegExpExecArray | undefined {
    for (const line of this.lines) {
      const match = pattern.exec(line)
      if (match) return match
    }
    return undefined
  }

  /** The number of invoiced orders that its job reported last. */
  get invoiced(): number {
    return Number(this.lines.findLast(line => / of \d+: /.test(line))?.split(' ', 1)[0] ?? 0)
  }

  /** Does any process still run that `kill` or `pause` found? */
  get alive(): boolean {
    return this.#family.some(pid => processes().has(pid))
  }

  /** Sends SIGKILL to `holdfast` only, like the out-of-memory killer. */
  kill(): void {
    this.#family = this.#pids()
    this.#process.kill('SIGKILL')
  }

  /** Pauses all its processes, like a paused container or virtual machine. */
  pause(): void {
    this.#family = this.#pids()
    for (const pid of this.#family) send(pid, 'SIGSTOP')
  }

  /** Resumes only the job, or all processes. The job started last. */
  resume(which: 'job' | 'all'): void {
    for (const pid of which === 'job' ? this.#family.slice(-1) : this.#family) send(pid, 'SIGCONT')
  }

  /** Kills all its processes. */
  async destroy(): Promise<void> {
    for (const pid of this.#pids()) send(pid, 'SIGKILL')
    await this.ended
  }

  /** `holdfast`, its supervisor, the job: each is the parent of the next. */
  #pids(): number[] {
    const { pid, exitCode, signalCode } = this.#process
    if (pid === undefined || exitCode !== null || signalCode !== null) return []
    const all = processes()
    const below = (parent: number): number[] =>
      [...all].filter(([, other]) => other === parent).flatMap(([child]) => [child, ...below(child)])
    return [pid, ...below(pid)]
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

/** All processes of this machine, each with its parent. */
function processes(): Map<number, number> {
  const table = process.platform === 'linux' ? procfs() : ps()
  return new Map(table.filter(([, , state]) => !/^[ZX]/.test(state)).map(([pid, parent]) => [pid, parent]))
}

type Entry = readonly [pid: number, parent: number, state: string]

// Small container images have no ps.
function procfs(): Entry[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map((pid): Entry => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
        // "pid (name) state parent …"; the name may contain spaces and parentheses.
        const [state = 'X', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return [Number(pid), Number(parent), state]
      } catch {
        return [Number(pid), 0, 'X'] // it ended meanwhile
      }
    })
}

function ps(): Entry[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' })
  return table
    .trim()
    .split('\n')
    .map((line): Entry => {
      const [pid, parent, state = ''] = line.trim().split(/\s+/)
      return [Number(pid), Number(parent), state]
    })
}
