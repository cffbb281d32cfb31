import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from './folder.ts'
import { buildLibrary } from './library.ts'

/** A name server for child processes that run with its `env`, as for Node. Go asks by itself, so it has no effect on etcd. */
export function startNames(): Names {
  return new Names(newFolder('names'), buildLibrary('names'))
}

export class Names {
  /** Environment variables for the child process. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string

  constructor(folder: string, library: string) {
    this.#folder = folder
    this.env = { LD_PRELOAD: library, HOLDFAST_NAMES: folder }
  }

  /** A name of 127.0.0.1. */
  of(server: number): string {
    return `server-${server}.holdfast.test`
  }

  /** Answers no look-up of this name, until `answer`. A process asks again after 5 s and gives up after 10. */
  silence(name: string): void {
    writeFileSync(join(this.#folder, name), '')
  }

  answer(name: string): void {
    rmSync(join(this.#folder, name), { force: true })
  }

  stop(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
