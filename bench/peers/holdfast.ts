import { clientsOf, connectedTo } from '../clients.ts'
import { Build } from '../holdfast.ts'
import { HOLDER, type Peer } from '../peer.ts'

export const peer: Peer = holdfastOverRedis('Holdfast')

export function holdfastOverRedis(label: string, folder?: string): Peer {
  return {
    label,
    over: 'redis',
    key: name => `holdfast:{:${name}}`,
    // `1 ENDS held …`: the two clocks are one, of this machine.
    isHeld: value => value.slice(16, 20) === 'held' && Number(value.slice(2, 15)) > Date.now(),
    can: ['pairs', 'wait', 'held', 'copies', 'permits', 'sets'],
    async open(place, copy) {
      const build = new Build(folder, copy)
      const { redis } = await build.redis()
      // Never connected: the store opens connections of its own like it.
      const [client] = clientsOf(place)
      return build.client(redis(client), () => client.disconnect())
    },
    async openWriter(place) {
      const { redisFence } = await new Build(folder).fencingRedis()
      const [client] = clientsOf(place)
      const fence = redisFence(client)
      return {
        plain: () => client.set('fences', 'written'),
        fenced: () => fence.set(HOLDER, 'fences', 'written'),
        async close() {
          await fence.close()
          client.disconnect()
        },
      }
    },
    async openTrip(place) {
      const [client] = await connectedTo(place)
      return { make: () => client.set('trip', 'made'), close: () => client.quit() }
    },
  }
}
