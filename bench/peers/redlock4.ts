import { createRequire } from 'node:module'
import type { Redis } from 'ioredis'
import { connectedTo, quit } from '../clients.ts'
import type { Over, Peer } from '../peer.ts'

interface Lock {
  unlock(): Promise<void>
}

interface Redlock {
  lock(resource: string, ttl: number): Promise<Lock>
}

type Constructor = new (clients: Redis[], options: object) => Redlock

export const peer: Peer = redlock4Over('redis')

export function redlock4Over(over: Over): Peer {
  return {
    label: 'redlock 4.2',
    over,
    key: name => name,
    can: ['pairs', 'wait'],
    async open(place) {
      const Redlock = createRequire(import.meta.url)('redlock') as Constructor
      const clients = await connectedTo(place)
      const redlock = new Redlock(clients, { retryCount: -1 })
      return {
        async acquire(name, ttl) {
          const lock = await redlock.lock(name, ttl)
          return () => lock.unlock()
        },
        close: () => quit(clients),
      }
    },
  }
}
