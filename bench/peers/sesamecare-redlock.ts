import { Redlock } from '@sesamecare-oss/redlock'
import { Redis } from 'ioredis'
import { ioredisOptions, type Peer } from '../peer.ts'
import { heldBy } from '../using.ts'

export const peer: Peer = {
  label: '@sesamecare-oss/redlock 1.4',
  over: 'redis',
  key: name => name,
  can: ['pairs', 'wait', 'held'],
  async open(place) {
    const client = new Redis(ioredisOptions(place))
    client.on('error', () => {})
    await client.connect()
    const redlock = new Redlock([client as never], { retryCount: -1 })
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
      close: () => client.quit(),
    }
  },
}
