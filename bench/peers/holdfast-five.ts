import { clientsOf, connectedTo, quit } from '../clients.ts'
import { Build } from '../holdfast.ts'
import type { Peer } from '../peer.ts'
import { mostOf } from './floor-five.ts'

export const peer: Peer = holdfastOverRedlock('Holdfast')

export function holdfastOverRedlock(label: string, folder?: string): Peer {
  return {
    label,
    over: 'redlock',
    can: ['pairs', 'wait'],
    async open(place) {
      const build = new Build(folder)
      const { redlock } = await build.redlock()
      // Never connected: the store opens connections of its own like them.
      const clients = clientsOf(place)
      return build.client(redlock(clients, { trustRestarted: true }), () => {
        for (const client of clients) client.disconnect()
      })
    },
    async openTrip(place) {
      const clients = await connectedTo(place)
      const most = mostOf(clients)
      const make = (): Promise<boolean> =>
        most(
          client => client.set('trip', 'made'),
          () => true,
        )
      return { make, close: () => quit(clients) }
    },
  }
}
