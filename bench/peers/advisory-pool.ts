import { createHash } from 'node:crypto'
import { Pool } from 'pg'
import { type Peer, poolOptions } from '../peer.ts'

/** What many write by hand: a connection for each lock. */
export const peer: Peer = {
  label: 'session advisory locks, pool of 16',
  over: 'postgres',
  can: ['pairs', 'wait'],
  async open(place) {
    const pool = new Pool(poolOptions(place, 16))
    return {
      async acquire(name) {
        const key = createHash('sha256').update(name).digest().readBigInt64BE().toString()
        const client = await pool.connect()
        await client.query('select pg_advisory_lock($1)', [key])
        return async () => {
          await client.query('select pg_advisory_unlock($1)', [key])
          client.release()
        }
      },
      close: () => pool.end(),
    }
  },
}
