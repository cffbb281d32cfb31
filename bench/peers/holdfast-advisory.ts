import { Pool } from 'pg'
import { Build } from '../holdfast.ts'
import { type Peer, poolOptions } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over advisory locks',
  over: 'postgres',
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const build = new Build()
    const { advisory } = await build.postgres()
    const pool = new Pool(poolOptions(place, 16))
    return build.client(advisory(pool, { create: true, ttl: 60_000 }), () => pool.end())
  },
}
