import { createRequire } from 'node:module'
import type { Redis } from 'ioredis'
import { connectedTo, quit } from '../clients.ts'
import type { Over, Peer } from '../peer.ts'
import { heldBy, type Redlock } from '../using.ts'

type Constructor = new (clients: Redis[], settings: object) => Redlock

export const peer: Peer = redlock5Over('redis')

export function redlock5Over(over: Over): Peer {
  return {
    label: 'redlock 5 beta',
    over,
    key: name => name,
    can: over === 'redis' ? ['pairs', 'wait', 'held', 'sets'] : ['pairs', 'wait', 'held'],
    async open(place) {
      const { default: Redlock } = createRequire(import.meta.url)('redlock5') as { default: Constructor }
      const clients = await connectedTo(place)
      const redlock = new Redlock(clients, { retryCount: -1 })
      redlock.on('error', () => {})
      return {
        async acquire(name, ttl) {
          const lock = await redlock.acquire([name], ttl)
          return () => lock.release()
        },
        async both(names, ttl) {
          const lock = await redlock.acquire([...names], ttl)
          return () => lock.release()
        },
        hold: (name, ttl, onLost) => heldBy(work => redlock.using([name], ttl, work), onLost),
        close: () => quit(clients),
      }
    },
  }
}
