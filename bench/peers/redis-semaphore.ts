import { Mutex, RedlockMutex, Semaphore } from 'redis-semaphore'
import { connectedTo, quit } from '../clients.ts'
import type { Over, Peer } from '../peer.ts'

/** What both kinds have. */
interface Held {
  readonly isAcquired: boolean
  release(): Promise<unknown>
}

export const peer: Peer = redisSemaphoreOver('redis')

export function redisSemaphoreOver(over: Over): Peer {
  return {
    label: 'redis-semaphore 5.8',
    over,
    key: name => `mutex:${name}`,
    // Its semaphore over several servers counts a majority for each permit, so it is not compared.
    can: over === 'redis' ? ['pairs', 'wait', 'held', 'permits'] : ['pairs', 'wait', 'held'],
    async open(place) {
      const clients = await connectedTo(place)
      const acquire = async (name: string, ttl: number, onLockLost: () => void): Promise<Held> => {
        const options = { lockTimeout: ttl, acquireTimeout: 1e9, onLockLost }
        const mutex = over === 'redis' ? new Mutex(clients[0], name, options) : new RedlockMutex(clients, name, options)
        await mutex.acquire()
        return mutex
      }
      return {
        async acquire(name, ttl) {
          const mutex = await acquire(name, ttl, () => {})
          return () => mutex.release()
        },
        async hold(name, ttl, onLost) {
          const mutex = await acquire(name, ttl, onLost)
          return { release: () => mutex.release(), isHeld: () => mutex.isAcquired }
        },
        async permit(name, limit, ttl) {
          const semaphore = new Semaphore(clients[0], name, limit, { lockTimeout: ttl, acquireTimeout: 1e9 })
          await semaphore.acquire()
          return () => semaphore.release()
        },
        close: () => quit(clients),
      }
    },
  }
}
