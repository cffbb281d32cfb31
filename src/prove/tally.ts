import { closeSync, openSync, readSync } from 'node:fs'
import type { Kind } from './history.ts'

/** How often each kind of event stands in a history that is being written. */
export class Tally {
  readonly counts: Partial<Record<Kind, number>> = {}
  readonly #file: number
  readonly #buffer = Buffer.alloc(1 << 20)
  #rest = ''

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /** Counts what was written since the last time. */
  update(): void {
    for (;;) {
      const length = readSync(this.#file, this.#buffer, 0, this.#buffer.length, null)
      if (length === 0) return
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) {
        const kind = /^\{"kind":"(\w+)"/.exec(line)?.[1] as Kind | undefined
        if (kind) this.counts[kind] = (this.counts[kind] ?? 0) + 1
      }
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
