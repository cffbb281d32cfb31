import { randomId } from '../../contract/random-id.ts'
import { Sequence } from '../../contract/sequence.ts'
import type { Connection, Driver } from '../wire/connection.ts'
import { ServerClock } from '../wire/server-clock.ts'
import type { Wire } from './client.ts'
import { inTime, withValues } from './sql.ts'

/** Opens our own connections, with the settings of the caller's client. */
export type PostgresDriver = Driver<PostgresConnection>

/**
 * A connection whose answers are matched to their requests. Each statement selects a random id in its second column, where
 * its text has `$0`. An answer with another id belongs to another request, because pgbouncer 1.18 shifts pipelined answers.
 * The connection is then closed, and the outcome of all requests in flight on it is unknown.
 */
export class PostgresConnection implements Connection {
  readonly clock: ServerClock = new ServerClock()
  readonly #wire: Wire
  #sequence: Sequence | undefined

  constructor(wire: Wire) {
    this.#wire = wire
  }

  /** The id of the server's process, as reported at the login. A pooler makes up an id. */
  get pid(): number | undefined {
    return this.#wire.pid
  }

  /**
   * Resolves to the first value of the first row. The second value must be `$0`. Rejects if the answer belongs to another
   * request, or if the connection ends before it. Use it to call functions by their full names: they set everything that
   * they depend on.
   */
  ask(text: string, values: readonly string[] = []): Promise<unknown> {
    return this.#send(id => this.#wire.firstRow(withValues(text.replace('$0', id), values)))
  }

  /** Like `ask`, for any other statement. The statement has a time limit, and finds only objects of PostgreSQL itself. */
  askInTime(text: string, values: readonly string[] = []): Promise<unknown> {
    return this.#send(id => this.#wire.firstRow(inTime(text.replace('$0', id), values)))
  }

  /** From now on, each request is sent only after the previous one is answered. */
  takeTurns(): void {
    this.#sequence ??= new Sequence()
  }

  /** Resolves when the subscription is active. */
  listen(channel: string, notified: (message: string) => void): Promise<void> {
    return this.#wire.listen(channel, notified)
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
    const id = randomId()
    const ask = (): Promise<readonly unknown[] | undefined> => put(`'${id}'`)
    const row = await (this.#sequence ? this.#sequence.run(ask) : ask())
    if (row?.[1] === id) return row[0]
    this.close()
    throw new Error('the answer belongs to another request: a pooler may have mixed them up')
  }
}
