import { Pool } from 'pg'
import { Build } from '../holdfast.ts'
import { HOLDER, type Peer, poolOptions } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over PostgreSQL',
  over: 'postgres',
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const build = new Build()
    const { postgres } = await build.postgres()
    // Never connected: the store opens connections of its own like it.
    const pool = new Pool(poolOptions(place, 16))
    return build.client(postgres(pool, { create: true }), () => pool.end())
  },
  async openWriter(place) {
    const { postgresFence } = await new Build().fencingPostgres()
    const pool = new Pool(poolOptions(place, 16))
    const fence = postgresFence(pool)
    await fence.install()
    await pool.query('create table written (line text)')
    const insert = "insert into written values ('a line')"
    return {
      async plain() {
        const client = await pool.connect()
        await client.query('begin')
        await client.query(insert)
        await client.query('commit')
        client.release()
      },
      fenced: () => fence.transaction(HOLDER, client => client.query(insert)),
      close: () => pool.end(),
    }
  },
  async openTrip(place) {
    const pool = new Pool(poolOptions(place, 1))
    const table = `trips_${process.pid}`
    await pool.query(`create table ${table} (times int); insert into ${table} values (0)`)
    return { make: () => pool.query(`update ${table} set times = times + 1`), close: () => pool.end() }
  },
}
