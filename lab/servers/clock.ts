import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { findBinary, UNPACKED } from './binary.ts'
import { newFolder } from './folder.ts'

const SOURCE = join(import.meta.dirname, 'clock.c')
// An installed package must not write to its own folder, so each process compiles the library for itself.
const TOOLS = import.meta.url.endsWith('.ts') ? join(import.meta.dirname, '../../.tools') : undefined

/**
 * A clock for child processes that run with its `env`: Redis, Valkey, PostgreSQL, Java, Node. It has no effect on programs
 * that ask the kernel directly (Go, so etcd). A jump does not shorten a wait that has begun.
 */
export function startClock(): ShiftedClock {
  return new ShiftedClock(newFolder('clock'), buildLibrary())
}

export class ShiftedClock implements Disposable {
  /** Environment variables for the child process. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string
  readonly #file: number
  readonly #shifts = new BigInt64Array(2)

  constructor(folder: string, library: string) {
    this.#folder = folder
    const path = join(folder, 'shifts')
    this.#file = openSync(path, 'w')
    this.#write()
    this.env = { LD_PRELOAD: library, HOLDFAST_CLOCK: path }
  }

  /** Moves the wall clock forward, or back if `ms` is negative. Redis expires keys by it. */
  jumpWall(ms: number): void {
    this.#jump(0, ms)
  }

  /** Moves the monotonic clock forward. */
  jumpMonotonic(ms: number): void {
    this.#jump(1, ms)
  }

  /** Moves both clocks, as after a suspend of the machine. */
  jump(ms: number): void {
    this.jumpWall(ms)
    this.jumpMonotonic(ms)
  }

  /** Removes its file. Running processes keep their shifts. */
  stop(): void {
    if (!existsSync(this.#folder)) return
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true })
  }

  [Symbol.dispose](): void {
    this.stop()
  }

  #jump(index: 0 | 1, ms: number): void {
    this.#shifts[index] = (this.#shifts[index] ?? 0n) + BigInt(Math.round(ms * 1_000_000))
    this.#write()
  }

  #write(): void {
    writeSync(this.#file, this.#shifts, 0, this.#shifts.byteLength, 0)
  }
}

// Compiled once per version of the source. The rename makes it appear complete to other processes.
function buildLibrary(): string {
  const folder = TOOLS ?? newFolder('library')
  const version = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 12)
  const library = join(folder, `clock-${process.arch}-${version}.so`)
  if (existsSync(library)) return library
  mkdirSync(folder, { recursive: true })
  const unfinished = `${library}.${process.pid}`
  const { path, args } = findCompiler()
  // Every program that loads it has the functions that it calls.
  execFileSync(path, [...args, '-shared', '-fPIC', '-nostdlib', '-o', unfinished, SOURCE], { stdio: 'pipe' })
  renameSync(unfinished, library)
  return library
}

/** The machine's C compiler, or the small one that `script/setup` unpacks with the headers if it is not root. */
function findCompiler(): { path: string; args: string[] } {
  try {
    return { path: findBinary('cc', 'gcc libc6-dev').path, args: [] }
  } catch (missing) {
    const path = join(UNPACKED, 'bin/tcc')
    if (!existsSync(path)) throw missing
    const triplet = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`
    const headers = ['include', `include/${triplet}`, `lib/${triplet}/tcc/include`]
    return { path, args: ['-nostdinc', ...headers.map(folder => `-I${join(UNPACKED, folder)}`)] }
  }
}
