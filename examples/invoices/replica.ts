import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** One `holdfast run` in a process of its own, and what it says. */
export class Replica {
  readonly name: string
  /** Settles when it has ended and said all: the exit code, or the signal. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** All lines so far, of the wrapper and of the job. */
  readonly lines: string[] = []
  readonly #process: ChildProcess
  #family: number[] = []

  constructor(name: string, [command = '', ...args]: readonly string[], folder: string, env: NodeJS.ProcessEnv) {
    this.name = name
    // A group of its own: Ctrl-C must reach the demo alone, which then cleans up.
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

  /** The groups of the first line that matches. */
  said(pattern: RegExp): RegExpExecArray | undefined {
    for (const line of this.lines) {
      const match = pattern.exec(line)
      if (match) return match
    }
    return undefined
  }

  /** How many orders are invoiced, by the last that its job said. */
  get invoiced(): number {
    return Number(this.lines.findLast(line => / of \d+: /.test(line))?.split(' ', 1)[0] ?? 0)
  }

  /** Is any process left of what `kill` or `freeze` found? */
  get alive(): boolean {
    return this.#family.some(pid => processes().has(pid))
  }

  /** SIGKILL to the wrapper alone, as an out-of-memory killer does. */
  kill(): void {
    this.#family = this.#pids()
    this.#process.kill('SIGKILL')
  }

  /** Stops all its processes, as a paused container or virtual machine is. */
  freeze(): void {
    this.#family = this.#pids()
    for (const pid of this.#family) send(pid, 'SIGSTOP')
  }

  /** Resumes the job, which is the youngest of the family, or all. */
  resume(which: 'job' | 'all'): void {
    for (const pid of which === 'job' ? this.#family.slice(-1) : this.#family) send(pid, 'SIGCONT')
  }

  /** Leaves nothing of it. */
  async destroy(): Promise<void> {
    for (const pid of this.#pids()) send(pid, 'SIGKILL')
    await this.ended
  }

  /** Wrapper, supervisor, job: each is the parent of the next. */
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
    // It ended by itself.
  }
}

/** Every process that runs on this machine, with its parent. */
function processes(): Map<number, number> {
  const table = process.platform === 'linux' ? procfs() : ps()
  return new Map(table.filter(([, , state]) => !/^[ZX]/.test(state)).map(([pid, parent]) => [pid, parent]))
}

type Entry = readonly [pid: number, parent: number, state: string]

// Small images have no ps.
function procfs(): Entry[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map((pid): Entry => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
        // "pid (name) state parent …"; the name may hold spaces and brackets.
        const [state = 'X', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return [Number(pid), Number(parent), state]
      } catch {
        return [Number(pid), 0, 'X'] // it ended while we looked
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
