import { DatabaseSync } from 'node:sqlite'

export interface Entry {
  readonly what: 'begins' | 'stops' | 'ends' | 'write' | 'refused'
  readonly pid: number
  readonly token: bigint
  /** Milliseconds of the clock that all processes of the machine share. */
  readonly at: number
}

/** What all candidates write to: the order of its rows is the order of their writes. */
export class Ledger implements Disposable {
  readonly #database: DatabaseSync

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { timeout: 10_000 })
    this.#database.exec(`pragma journal_mode = wal; pragma synchronous = off;
      create table if not exists mark (one integer primary key check (one = 1), token integer not null);
      insert or ignore into mark values (1, 0);
      create table if not exists entry (seq integer primary key, what text, pid integer, token integer, at real)`)
  }

  /** A fenced write. Throws if a newer leader has written. */
  write(token: bigint): void {
    this.#database.exec('begin immediate')
    const raise = this.#database.prepare('update mark set token = ? where token <= ?')
    const isNewest = raise.run(token, token).changes === 1
    this.tell(isNewest ? 'write' : 'refused', token)
    this.#database.exec('commit')
    if (!isNewest) throw new Error('a newer leader has written')
  }

  /** Not fenced: what a candidate says of itself. */
  tell(what: Entry['what'], token: bigint): void {
    const insert = this.#database.prepare('insert into entry (what, pid, token, at) values (?, ?, ?, ?)')
    insert.run(what, process.pid, token, Number(process.hrtime.bigint()) / 1e6)
  }

  entries(): Entry[] {
    const all = this.#database.prepare('select what, pid, token, at from entry order by seq')
    all.setReadBigInts(true)
    return (all.all() as unknown as { what: Entry['what']; pid: bigint; token: bigint; at: number }[]).map(entry => ({
      ...entry,
      pid: Number(entry.pid),
    }))
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }
}
