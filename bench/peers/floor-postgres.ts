import { randomUUID } from 'node:crypto'
import { Pool } from 'pg'
import { type Peer, pause, poolOptions } from '../peer.ts'

// The table that is warned of: who holds says so again and again, and a sweep frees what was not said for long.
const table = `create table if not exists locks (name text primary key, owner text not null, last_heartbeat timestamptz not null)`
const insert = `insert into locks values ($1, $2, now()) on conflict (name) do update
  set owner = excluded.owner, last_heartbeat = now() where locks.last_heartbeat < now() - $3 * interval '1 ms'`
const remove = 'delete from locks where name = $1 and owner = $2'
const heartbeat = 'update locks set last_heartbeat = now() where name = $1 and owner = $2'
const sweep = `delete from locks where last_heartbeat < now() - interval '30 s'`

export const peer: Peer = {
  label: 'floor: a locks table, insert on conflict, pool of 16',
  over: 'postgres',
  can: ['pairs', 'wait', 'held'],
  isFloor: true,
  async open(place) {
    const pool = new Pool(poolOptions(place, 16))
    await pool.query(`select pg_advisory_xact_lock(1); ${table}`)
    const sweeping = setInterval(() => void pool.query(sweep).catch(() => {}), 1_000)
    const acquire = async (name: string, ttl: number): Promise<string> => {
      for (;;) {
        const id = randomUUID()
        if ((await pool.query(insert, [name, id, ttl])).rowCount === 1) return id
        await pause(25 + Math.random() * 50)
      }
    }
    return {
      async acquire(name, ttl) {
        const id = await acquire(name, ttl)
        return () => pool.query(remove, [name, id])
      },
      async hold(name, ttl) {
        const id = await acquire(name, ttl)
        const timer = setInterval(() => void pool.query(heartbeat, [name, id]).catch(() => {}), ttl / 3)
        return {
          release() {
            clearInterval(timer)
            return pool.query(remove, [name, id])
          },
        }
      },
      async close() {
        clearInterval(sweeping)
        await pool.end()
      },
    }
  },
}
