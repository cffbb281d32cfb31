import { base64, Gateway, serveEtcd } from '../etcd.ts'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'Holdfast over etcd',
  over: 'etcd',
  can: ['pairs', 'wait'],
  serve: serveEtcd,
  async open({ host, ports: [port] }) {
    const build = new Build()
    const { etcd } = await build.etcd()
    return build.client(etcd({ endpoints: [`${host}:${port}`] }))
  },
  async openTrip(place) {
    const gateway = new Gateway(place)
    const put = { key: base64('trip'), value: base64('made') }
    return { make: () => gateway.ask('kv/put', put), close: async () => gateway.close() }
  },
}
