import { Redlock } from '@sesamecare-oss/redlock'
import { connectedTo, quit } from '../clients.ts'
import type { Over, Peer } from '../peer.ts'
import { heldBy } from '../using.ts'

export const peer: Peer = sesamecareRedlockOver('redis')

export function sesamecareRedlockOver(over: Over): Peer {
  return {
    label: '@sesamecare-oss/redlock 1.4',
    over,
    key: name => name,
    can: ['pairs', 'wait', 'held'],
    async open(place) {
      const clients = await connectedTo(place)
      const redlock = new Redlock(clients as unknown as never[], { retryCount: -1 })
      return {
        async acquire(name, ttl) {
          const lock = await redlock.acquire([name], ttl)
          return () => lock.release()
        },
        hold: (name, ttl, onLost) =>
          heldBy(
            work => redlock.using([name], ttl, (signal, { lock }) => work(signal, () => lock.expiration > Date.now())),
            onLost,
          ),
        close: () => quit(clients),
      }
    },
  }
}
