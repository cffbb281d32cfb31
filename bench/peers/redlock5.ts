import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { ioredisOptions, type Peer } from '../peer.ts'
import { heldBy, type Redlock } from '../using.ts'

type Constructor = new (clients: Redis[], settings: object) => Redlock

export const peer: Peer = {
  label: 'redlock 5 beta',
  over: 'redis',
  key: name => name,
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const { default: Redlock } = createRequire(import.meta.url)('redlock5') as { default: Constructor }
    const client = new Redis(ioredisOptions(place))
    client.on('error', () => {})
    await client.connect()
    const redlock = new Redlock([client], { retryCount: -1 })
    redlock.on('error', () => {})
    return {
      async acquire(name, ttl) {
        const lock = await redlock.acquire([name], ttl)
        return () => lock.release()
      },
      hold: (name, ttl, onLost) => heldBy(work => redlock.using([name], ttl, work), onLost),
      close: () => client.quit(),
    }
  },
}
