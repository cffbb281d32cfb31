import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { ioredisOptions, type Peer } from '../peer.ts'

interface Lock {
  unlock(): Promise<void>
}

interface Redlock {
  lock(resource: string, ttl: number): Promise<Lock>
}

type Constructor = new (clients: Redis[], options: object) => Redlock

export const peer: Peer = {
  label: 'redlock 4.2',
  over: 'redis',
  key: name => name,
  can: ['pairs', 'wait'],
  async open(place) {
    const Redlock = createRequire(import.meta.url)('redlock') as Constructor
    const client = new Redis(ioredisOptions(place))
    await client.connect()
    const redlock = new Redlock([client], { retryCount: -1 })
    return {
      async acquire(name, ttl) {
        const lock = await redlock.lock(name, ttl)
        return () => lock.unlock()
      },
      close: () => client.quit(),
    }
  },
}
