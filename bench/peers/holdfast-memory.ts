import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast in memory',
  over: 'memory',
  can: ['pairs'],
  async open() {
    const build = new Build()
    const { memory } = await build.main()
    return build.client(memory())
  },
}
