import { Pool } from 'pg'
import { Build } from '../holdfast.ts'
import { type Peer, poolOptions } from '../peer.ts'

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
}
