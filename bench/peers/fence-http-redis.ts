import { connectedTo, quit } from '../clients.ts'
import { Build } from '../holdfast.ts'
import { keepsNoLeases, type Peer } from '../peer.ts'
import { writerTo } from './fence-http.ts'

export const peer: Peer = {
  ...keepsNoLeases,
  label: 'HTTP service, checked at its door by marks in Redis',
  over: 'http',
  async openWriter(place) {
    const build = new Build()
    const { nodeFence } = await build.fencingHttp()
    const { redisFence } = await build.fencingRedis()
    const clients = await connectedTo(place)
    const [client] = clients
    const fence = redisFence(client)
    const mayGoOn = nodeFence(fence.marks)
    return writerTo(
      async (request, response) => {
        if (request.url === '/plain' || (await mayGoOn(request, response))) await client.set('fences', 'written')
      },
      async () => {
        await fence.close()
        await quit(clients)
      },
    )
  },
}
