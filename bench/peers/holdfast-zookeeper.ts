import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import { create, multi, setDataStep } from '../../src/stores/zookeeper/protocol.ts'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'
import { openSession, SYNCED, WORLD } from './floor-zookeeper.ts'

export const peer: Peer = {
  label: 'Holdfast over ZooKeeper',
  over: 'zookeeper',
  can: ['pairs', 'wait'],
  serve: async () => (await startZooKeeper(SYNCED)).port,
  async open({ host, ports: [port = 0] }) {
    const build = new Build()
    const { zookeeper } = await build.zookeeper()
    return build.client(zookeeper({ servers: `${host}:${port}` }))
  },
  async openTrip(place) {
    const connection = await openSession(place)
    const path = `/trip-${process.pid}`
    await connection.send(create(path, '', WORLD, 'persistent'))
    return {
      make: () => connection.send(multi([setDataStep(path, 'made')])),
      close: async () => connection.end(new Error('over')),
    }
  },
}
