import { startZooKeeper } from '../../src/lab/servers/zookeeper.ts'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over ZooKeeper',
  over: 'zookeeper',
  can: ['pairs', 'wait'],
  serve: async () => (await startZooKeeper()).port,
  async open({ host, ports: [port = 0] }) {
    const build = new Build()
    const { zookeeper } = await build.zookeeper()
    return build.client(zookeeper({ servers: `${host}:${port}` }))
  },
}
