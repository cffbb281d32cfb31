import { randomUUID } from 'node:crypto'
import { connectedTo } from '../clients.ts'
import { type Peer, pause } from '../peer.ts'

// What the documentation of Redis shows: no token, nobody is told of a loss.
export const release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`
const renew = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`

interface Scripts {
  releaseLease(key: string, id: string): Promise<number>
  renewLease(key: string, id: string, ttl: number): Promise<number>
}

export const peer: Peer = {
  label: 'floor: SET NX PX, compare and delete',
  over: 'redis',
  key: name => name,
  can: ['pairs', 'wait', 'held'],
  isFloor: true,
  async open(place) {
    const [client] = await connectedTo(place)
    client.defineCommand('releaseLease', { numberOfKeys: 1, lua: release })
    client.defineCommand('renewLease', { numberOfKeys: 1, lua: renew })
    const scripts = client as unknown as Scripts

    const acquire = async (name: string, ttl: number): Promise<string> => {
      for (;;) {
        const id = randomUUID()
        if ((await client.set(name, id, 'PX', ttl, 'NX')) === 'OK') return id
        await pause(25 + Math.random() * 50)
      }
    }
    return {
      async acquire(name, ttl) {
        const id = await acquire(name, ttl)
        return () => scripts.releaseLease(name, id)
      },
      async hold(name, ttl) {
        const id = await acquire(name, ttl)
        const timer = setInterval(() => void scripts.renewLease(name, id, ttl).catch(() => {}), ttl / 3)
        return {
          release() {
            clearInterval(timer)
            return scripts.releaseLease(name, id)
          },
        }
      },
      close: () => client.quit(),
    }
  },
}
