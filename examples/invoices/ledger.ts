import { DatabaseSync } from 'node:sqlite'

/** An invoice. `token` is the token of the run that wrote it. */
export interface Invoice {
  readonly order: string
  readonly customer: string
  readonly cents: number
  readonly token: bigint
}

/** A newer holder of the lease has written. The job that gets this error must stop. */
export class Refused extends Error {}

/** Invoices in a SQLite file. It does not trust its writers: each write needs a fencing token. */
export class Ledger {
  readonly #file: DatabaseSync

  constructor(path: string) {
    this.#file = new DatabaseSync(path)
    this.#file.exec(`
      pragma busy_timeout = 5000;
      create table if not exists fence (id integer primary key check (id = 1), highest integer not null);
      create table if not exists invoice (
        number integer primary key, order_id text not null unique, customer text not null, cents integer not null,
        token integer not null
      )
    `)
  }

  /** Advances the highest token without writing. From here on, every earlier holder is refused. Throws `Refused`. */
  advance(token: bigint): void {
    // Fencing: accept the token if it is not below the highest one seen, and remember it.
    const { changes } = this.#file
      .prepare(
        `insert into fence (id, highest) values (1, ?)
         on conflict do update set highest = excluded.highest where excluded.highest >= fence.highest`,
      )
      .run(token)
    if (changes === 0) throw new Refused(`the ledger has seen token ${this.highest()}, and ${token} is lower`)
  }

  /** Checks the token and writes, in one transaction. Throws `Refused`. */
  write({ order, customer, cents, token }: Invoice): void {
    this.#file.exec('begin immediate')
    try {
      this.advance(token)
      this.#file
        .prepare('insert into invoice (order_id, customer, cents, token) values (?, ?, ?, ?)')
        .run(order, customer, cents, token)
      this.#file.exec('commit')
    } catch (error) {
      // Some errors, such as a full disk, end the transaction. Node 22.13 has no isTransaction.
      if (this.#file.isTransaction !== false) this.#file.exec('rollback')
      throw error
    }
  }

  /** The highest token seen. */
  highest(): bigint | undefined {
    const statement = this.#file.prepare('select highest from fence')
    statement.setReadBigInts(true)
    return statement.get()?.highest as bigint | undefined
  }

  /** All invoices, ordered by number. */
  invoices(): Invoice[] {
    const statement = this.#file.prepare('select order_id, customer, cents, token from invoice order by number')
    statement.setReadBigInts(true)
    return statement.all().map(row => ({
      order: row.order_id as string,
      customer: row.customer as string,
      cents: Number(row.cents),
      token: row.token as bigint,
    }))
  }

  close(): void {
    this.#file.close()
  }
}
