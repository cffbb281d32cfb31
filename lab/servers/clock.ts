import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from './folder.ts'
import { buildLibrary } from './library.ts'

/**
 * A clock for child processes that run with its `env`: Redis, Valkey, PostgreSQL, Java, Node. It has no effect on programs
 * that ask the kernel directly (Go, so etcd). A jump does not shorten a wait that has begun.
 */
export function startClock(): ShiftedClock {
  return new ShiftedClock(newFolder('clock'), buildLibrary('clock'))
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
