import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { BUILD, Build } from '../holdfast.ts'
import { HOLDER, type Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over SQLite',
  over: 'sqlite',
  can: ['pairs', 'wait', 'copies'],
  async open({ folder }, copy) {
    const build = new Build(BUILD, copy)
    const { sqlite } = await build.sqlite()
    return build.client(sqlite(join(folder, 'leases.db')))
  },
  async openWriter({ folder }) {
    const { sqliteFence } = await new Build().fencingSqlite()
    const database = openDatabase(join(folder, 'fences.db'))
    database.exec('create table written (times integer); insert into written values (0)')
    const update = database.prepare('update written set times = times + 1')
    const fence = sqliteFence(database)
    fence.install()
    return {
      async plain() {
        database.exec('begin immediate')
        update.run()
        database.exec('commit')
      },
      fenced: async () => fence.transaction(HOLDER, () => update.run()),
      close: async () => database.close(),
    }
  },
  async openTrip({ folder }) {
    const database = openDatabase(join(folder, `trips-${process.pid}.db`))
    database.exec('create table trips (times integer); insert into trips values (0)')
    const update = database.prepare('update trips set times = times + 1')
    return { make: async () => update.run(), close: async () => database.close() }
  },
}

/** As safe as the store's own. */
export function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  return database
}
