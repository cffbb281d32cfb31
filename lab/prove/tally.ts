import { closeSync, openSync, readSync } from 'node:fs'
import type { Event, Kind } from './history.ts'

/** Follows a history that is being written: how often each kind of event happened, and who holds something. */
export class Tally {
  readonly counts: Partial<Record<Kind, number>> = {}
  readonly #file: number
  readonly #buffer = Buffer.alloc(1 << 16)
  readonly #holders = new Map<number, number>()
  #rest = ''

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /** The clients that hold a name just now. */
  holders(): ReadonlySet<number> {
    this.update()
    return new Set(this.#holders.values())
  }

  /** Reads what was written since the last time. */
  update(): void {
    for (;;) {
      const length = readSync(this.#file, this.#buffer, 0, this.#buffer.length, null)
      if (length === 0) return
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#read(line)
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  #read(line: string): void {
    const kind = /^\{"kind":"(\w+)"/.exec(line)?.[1] as Kind | undefined
    if (!kind) return
    this.counts[kind] = (this.counts[kind] ?? 0) + 1
    if (kind !== 'granted' && kind !== 'releasing' && kind !== 'lost' && kind !== 'died') return
    const event = JSON.parse(line) as Event<'granted' | 'releasing' | 'lost' | 'died'>
    if (event.kind === 'granted') this.#holders.set(event.op, event.client)
    else if (event.kind !== 'died') this.#holders.delete(event.op)
    else for (const [op, client] of this.#holders) if (client === event.client) this.#holders.delete(op)
  }
}
