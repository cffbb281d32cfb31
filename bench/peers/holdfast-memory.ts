import { BUILD, Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast in memory',
  over: 'memory',
  can: ['copies'],
  async open(_, copy) {
    const build = new Build(BUILD, copy)
    const { memory } = await build.memory()
    return build.client(memory())
  },
}
