import { connectedTo, quit } from '../clients.ts'
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
      const clients = await connectedTo(place)
      // As servers have it that are 30 s old: younger ones give no vote.
      for (const client of clients) {
        const [, runId] = /run_id:(\w+)/.exec(await client.info('server')) ?? []
        await client.set('holdfast:redlock:since', `${runId} ${Date.now() - 60_000}`)
      }
      return build.client(redlock(clients), () => quit(clients))
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
