import { Redis } from 'ioredis'
import { createLock, IoredisAdapter } from 'redlock-universal'
import { ioredisOptions, type Peer } from '../peer.ts'
import { heldBy } from '../using.ts'

export const peer: Peer = {
  label: 'redlock-universal 0.8.5',
  over: 'redis',
  key: name => name,
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const client = new Redis(ioredisOptions(place))
    client.on('error', () => {})
    await client.connect()
    const adapter = new IoredisAdapter(client as never)
    // One object for each name, as its documentation has it.
    const locks = new Map<string, ReturnType<typeof createLock>>()
    const lockOf = (key: string, ttl: number): ReturnType<typeof createLock> => {
      const known = locks.get(key) ?? createLock({ adapter, key, ttl, retryAttempts: Number.MAX_SAFE_INTEGER })
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
      close: () => client.quit(),
    }
  },
}
