import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { createLocks } from '../../index.ts'
import { sqlite } from '../../stores/sqlite/index.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
/** A job that records every 2 ms that it runs. */
export const BEATING: string = fileURLToPath(new URL('./beating.ts', import.meta.url))
/** Node, with the options that 22.13 to 22.17 need to run TypeScript. */
export const NODE: readonly string[] = [
  process.execPath,
  ...(process.features.typescript ? [] : ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']),
]

/** The command that starts holdfast from source. */
export const HOLDFAST: readonly string[] = [...NODE, MAIN]

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** A temporary folder for each test. Its `leases.db` is the store of every command. */
export let folder: string
let started: Running[] = []
/** How to end what this process holds. */
const held: (() => Promise<void>)[] = []

interface HoldOptions {
  readonly owner?: string
  readonly note?: string
  readonly ttl?: number
  readonly limit?: number
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
})

afterEach(async () => {
  const unfinished = started
  started = []
  for (const { child, pid } of unfinished) {
    const family = child.exitCode === null && child.signalCode === null ? descendants(pid) : []
    for (const one of [...family, pid]) kill(one, 'SIGKILL')
  }
  await Promise.all(unfinished.map(running => running.ended))
  await Promise.all(held.splice(0).map(end => end()))
  rmSync(folder, { recursive: true, force: true })
})

export interface Result {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** A running command. */
export class Running {
  readonly child: ChildProcess
  readonly ended: Promise<Result>
  out = ''
  err = ''

  constructor(child: ChildProcess) {
    this.child = child
    started.push(this)
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text
    })
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) => resolve({ code, signal, out: this.out, err: this.err }))
    })
  }

  get pid(): number {
    return this.child.pid as number
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  /** Resolves when standard output has this text. */
  async prints(text: string | RegExp): Promise<void> {
    await until(
      () => matches(this.out, text),
      () => `output ${JSON.stringify(text.toString())} of:\n${this.out}\n${this.err}`,
    )
  }

  /** Resolves when standard error has this text. */
  async reports(text: string | RegExp): Promise<void> {
    await until(
      () => matches(this.err, text),
      () => `message ${JSON.stringify(text.toString())} in:\n${this.err}`,
    )
  }
}

export interface Options {
  /** Environment variables to set, or to remove if `undefined`. */
  readonly env?: Record<string, string | undefined>
  /** Standard input. @default none */
  readonly input?: string
  /** Leave standard input open, for the test to write to. */
  readonly pipe?: boolean
}

/** Starts `holdfast` in its own process group. */
export function start(args: readonly string[], options: Options = {}): Running {
  return launch([...HOLDFAST, ...args], options)
}

/** Starts any command with the environment of `holdfast`. */
export function launch([command = '', ...args]: readonly string[], { env, input, pipe }: Options = {}): Running {
  const {
    NODE_ENV: _test,
    VITEST: _vitest,
    FORCE_COLOR: _colour,
    NO_COLOR: _plain,
    CI: _ci,
    ...inherited
  } = process.env
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...inherited, HOLDFAST_STORE: store(), ...env },
    stdio: [input !== undefined || pipe ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    detached: true,
  })
  if (!pipe) child.stdin?.end(input)
  return new Running(child)
}

/** Runs `holdfast` to its end. */
export function holdfast(args: readonly string[], options: Options = {}): Promise<Result> {
  return start(args, options).ended
}

/** Starts a command that holds `name` until it is killed. Resolves when it holds. */
export async function holding(name: string, ...options: string[]): Promise<Running> {
  const running = start(['run', name, ...options, '--', 'sh', '-c', 'echo ready; exec sleep 60'])
  await running.prints('ready')
  return running
}

/** This process holds `name` in the test's store until the test ends: without the processes of `holding`. */
export async function hold(name: string, { limit, ...options }: HoldOptions = {}): Promise<void> {
  const locks = createLocks(sqlite(join(folder, 'leases.db')))
  const lease = await (limit ? locks.semaphore(name, { limit }).acquire(options) : locks.acquire(name, options))
  held.push(async () => {
    await lease.release()
    await locks.close()
  })
}

/** The URL of the test's store. */
export function store(): string {
  return `sqlite:${join(folder, 'leases.db')}`
}

/** Resolves when `condition` is true. Fails after 20 s. */
export async function until(condition: () => boolean | Promise<boolean>, what: string | (() => string)): Promise<void> {
  const start = performance.now()
  while (!(await condition())) {
    const elapsed = performance.now() - start
    if (elapsed > 20_000) expect.fail(`timed out waiting for ${typeof what === 'string' ? what : what()}`)
    await new Promise(resolve => setTimeout(resolve, Math.min(Math.max(5, elapsed / 10), 50)))
  }
}

function matches(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
}

interface Entry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly state: string
}

/** Every process of the machine that is not a zombie. */
function processes(): Entry[] {
  if (process.platform !== 'linux') return listed()
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => entryOf(Number(pid)))
    .filter(isAlive)
}

function entryOf(pid: number): Entry {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state = 'X', parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(parent), group: Number(group), state }
  } catch {
    return { pid, parent: 0, group: 0, state: 'X' } // it ended meanwhile
  }
}

function isAlive({ state }: Entry): boolean {
  return state !== 'Z' && state !== 'X'
}

function listed(): Entry[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], { encoding: 'utf8' })
  return table
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .map(([pid, parent, group, state = '']) => ({
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      state,
    }))
    .filter(({ state }) => !state.startsWith('Z'))
}

export function alive(pid: number): boolean {
  if (process.platform === 'linux') return isAlive(entryOf(pid))
  return processes().some(entry => entry.pid === pid)
}

/** Processes of this group. */
export function members(group: number): number[] {
  return processes()
    .filter(entry => entry.group === group)
    .map(entry => entry.pid)
}

export function descendants(pid: number): number[] {
  const all = processes()
  const below = (parent: number): number[] =>
    all.filter(entry => entry.parent === parent).flatMap(entry => [entry.pid, ...below(entry.pid)])
  return below(pid)
}

/** The supervisor of a `holdfast run`, and the command below it. */
export function family(running: Running): { supervisor: number; command: number } {
  const all = processes()
  const supervisor = all.find(entry => entry.parent === running.pid)?.pid
  const command = all.find(entry => entry.parent === supervisor)?.pid
  if (!supervisor || !command) expect.fail(`no supervisor and command below ${running.pid}`)
  return { supervisor, command }
}

/** Does nothing if the process has ended. */
export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}
