import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import { ioredisOptions, type Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'redis-semaphore 5.8',
  over: 'redis',
  key: name => `mutex:${name}`,
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const client = new Redis(ioredisOptions(place))
    client.on('error', () => {})
    await client.connect()
    const acquire = async (name: string, ttl: number, onLockLost: () => void): Promise<Mutex> => {
      const mutex = new Mutex(client, name, { lockTimeout: ttl, acquireTimeout: 1e9, onLockLost })
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
      close: () => client.quit(),
    }
  },
}
