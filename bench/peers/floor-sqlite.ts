import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'floor: node:sqlite, one insert and one delete',
  over: 'sqlite',
  can: ['pairs'],
  isFloor: true,
  async open({ folder }) {
    const database = new DatabaseSync(join(folder, 'floor.db'))
    // As safe as Holdfast's: each statement is a transaction that is synced to the disk.
    database.exec('pragma journal_mode = wal; pragma synchronous = full')
    database.exec('create table leases (name text primary key, id text, expires integer) without rowid')
    const insert = database.prepare('insert into leases values (?, ?, ?)')
    const remove = database.prepare('delete from leases where name = ? and id = ?')
    return {
      async acquire(name, ttl) {
        const id = randomUUID()
        insert.run(name, id, Date.now() + ttl)
        return async () => remove.run(name, id)
      },
      close: async () => database.close(),
    }
  },
}
