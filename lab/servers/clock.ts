import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { findBinary, UNPACKED } from './binary.ts'
import { newFolder } from './folder.ts'

const SOURCE = join(import.meta.dirname, 'clock.c')
// In the package each program that changes clocks builds it for itself: it must not write where it is installed.
const TOOLS = import.meta.url.endsWith('.ts') ? join(import.meta.dirname, '../../.tools') : undefined

/**
 * A clock of its own for child processes that run with its `env`: Redis, Valkey, PostgreSQL, Java, Node. It has no
 * effect on programs that ask the kernel directly (Go, so etcd). A timeout that the process already waits for is a
 * duration, and no jump shortens it.
 */
export function startClock(): ShiftedClock {
  return new ShiftedClock(newFolder('clock'), buildLibrary())
}

export class ShiftedClock implements Disposable {
  /** To be merged into the environment of a child process. */
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

  /** Sets the wall clock forward, or back if `ms` is negative. Redis judges expiry by it. */
  jumpWall(ms: number): void {
    this.#jump(0, ms)
  }

  /** Lets `ms` pass at once on the monotonic clock. */
  jumpMonotonic(ms: number): void {
    this.#jump(1, ms)
  }

  /** Both: what a machine sees that slept. */
  jump(ms: number): void {
    this.jumpWall(ms)
    this.jumpMonotonic(ms)
  }

  /** Removes its file. Processes that use it keep the shifts that they have. */
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

// Built once per version of the source, by whichever test process needs it first; the others see it whole or not.
function buildLibrary(): string {
  const folder = TOOLS ?? newFolder('library')
  const version = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 12)
  const library = join(folder, `clock-${process.arch}-${version}.so`)
  if (existsSync(library)) return library
  mkdirSync(folder, { recursive: true })
  const unfinished = `${library}.${process.pid}`
  const { path, args } = findCompiler()
  // The functions it calls are in every program that loads it.
  execFileSync(path, [...args, '-shared', '-fPIC', '-nostdlib', '-o', unfinished, SOURCE], { stdio: 'pipe' })
  renameSync(unfinished, library)
  return library
}

/** The machine's C compiler, else the small one that `script/setup` unpacks with the headers when it is not root. */
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
