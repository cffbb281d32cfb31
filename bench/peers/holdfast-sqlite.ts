import { join } from 'node:path'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over SQLite',
  over: 'sqlite',
  can: ['pairs', 'wait'],
  async open({ folder }) {
    const build = new Build()
    const { sqlite } = await build.sqlite()
    return build.client(sqlite(join(folder, 'leases.db')))
  },
}
