import { createLock, createRedlock, IoredisAdapter } from 'redlock-universal'
import { connectedTo, quit } from '../clients.ts'
import type { Over, Peer } from '../peer.ts'
import { heldBy } from '../using.ts'

export const peer: Peer = redlockUniversalOver('redis')

export function redlockUniversalOver(over: Over): Peer {
  return {
    label: 'redlock-universal 0.8.5',
    over,
    key: name => name,
    can: ['pairs', 'wait', 'held'],
    async open(place) {
      const clients = await connectedTo(place)
      const adapters = clients.map(client => new IoredisAdapter(client as never))
      const [adapter] = adapters as [IoredisAdapter]
      const create = (key: string, ttl: number): ReturnType<typeof createLock> => {
        const settings = { key, ttl, retryAttempts: Number.MAX_SAFE_INTEGER }
        return over === 'redis' ? createLock({ adapter, ...settings }) : createRedlock({ adapters, ...settings })
      }
      // One object for each name, as its documentation has it.
      const locks = new Map<string, ReturnType<typeof create>>()
      const lockOf = (key: string, ttl: number): ReturnType<typeof create> => {
        const known = locks.get(key) ?? create(key, ttl)
        locks.set(key, known)
        return known
      }
      return {
        async acquire(name, ttl) {
          const lock = lockOf(name, ttl)
          const handle = await lock.acquire()
          return () => lock.release(handle)
        },
        hold: (name, ttl, onLost) => {
          const lock = lockOf(name, ttl)
          return heldBy(work => lock.using(async signal => work(signal)), onLost)
        },
        close: () => quit(clients),
      }
    },
  }
}
