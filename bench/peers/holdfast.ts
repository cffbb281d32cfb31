import { clientsOf } from '../clients.ts'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = holdfastOverRedis('Holdfast')

export function holdfastOverRedis(label: string, folder?: string): Peer {
  return {
    label,
    over: 'redis',
    key: name => `holdfast:{:${name}}`,
    // `1 ENDS held …`: the two clocks are one, of this machine.
    isHeld: value => value.slice(16, 20) === 'held' && Number(value.slice(2, 15)) > Date.now(),
    can: ['pairs', 'wait', 'held'],
    async open(place) {
      const build = new Build(folder)
      const { redis } = await build.redis()
      // Never connected: the store opens connections of its own like it.
      const [client] = clientsOf(place)
      return build.client(redis(client), () => client.disconnect())
    },
  }
}
