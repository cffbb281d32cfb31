import { randomUUID } from 'node:crypto'
import { Sequence } from '../../contract/sequence.ts'
import type { Link, Wire } from './client.ts'
import { inTime } from './sql.ts'

/**
 * A connection whose answers are bound to their requests. Each statement selects a random id in its second column, where
 * its text has `$0`. An answer with another id belongs to another request: pgbouncer 1.18 shifts pipelined answers. The
 * connection is then closed, and the outcome of all requests in flight on it is unknown.
 */
export class BoundLink implements Link {
  readonly #wire: Wire
  #turns: Sequence | undefined

  constructor(wire: Wire) {
    this.#wire = wire
  }

  get pid(): number | undefined {
    return this.#wire.pid
  }

  ask(text: string, values: readonly string[] = []): Promise<unknown> {
    return this.#send(id => this.#wire.firstRow(text.replace('$0', id), values))
  }

  askInTime(text: string, values: readonly string[] = []): Promise<unknown> {
    return this.#send(id => this.#wire.firstRow(inTime(text.replace('$0', id), values)))
  }

  takeTurns(): void {
    this.#turns ??= new Sequence()
  }

  listen(channel: string, heard: (message: string) => void): Promise<void> {
    return this.#wire.listen(channel, heard)
  }

  onEnd(ended: () => void): void {
    this.#wire.onEnd(ended)
  }

  isOpen(): boolean {
    return this.#wire.isOpen()
  }

  close(): void {
    this.#wire.close()
  }

  async #send(put: (id: string) => Promise<readonly unknown[] | undefined>): Promise<unknown> {
    const id = randomUUID()
    const ask = (): Promise<readonly unknown[] | undefined> => put(`'${id}'`)
    const row = await (this.#turns ? this.#turns.run(ask) : ask())
    if (row?.[1] === id) return row[0]
    this.close()
    throw new Error('the answer belongs to another request: a pooler may have mixed them up')
  }
}
