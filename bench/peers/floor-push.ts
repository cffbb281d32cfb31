import { randomUUID } from 'node:crypto'
import { clientsOf } from '../clients.ts'
import type { Peer } from '../peer.ts'

// The least that a handoff to one waiter takes: a script that publishes, and the script of whoever hears it. Nothing
// here lapses, and who dies in line blocks it: it is a measure and no lock.
const take = `
  if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3]) then return 1 end
  redis.call('rpush', KEYS[2], ARGV[2] .. ' ' .. ARGV[1])
  return 0`
const pass = `
  redis.call('del', KEYS[1])
  local next = redis.call('lpop', KEYS[2])
  if next then redis.call('publish', string.match(next, '^%S+'), string.match(next, '%S+$')) end`

interface Scripts {
  take(key: string, line: string, id: string, channel: string, ttl: number): Promise<number>
  pass(key: string, line: string): Promise<void>
}

export const peer: Peer = {
  label: 'floor: one publish and one script',
  over: 'redis',
  can: ['wait'],
  isFloor: true,
  async open(place) {
    const [client] = clientsOf(place)
    const [listener] = clientsOf(place)
    client.defineCommand('take', { numberOfKeys: 2, lua: take })
    client.defineCommand('pass', { numberOfKeys: 2, lua: pass })
    const scripts = client as unknown as Scripts
    const channel = randomUUID()
    const wakes = new Map<string, () => void>()
    listener.on('message', (_, id: string) => wakes.get(id)?.())
    await Promise.all([client.connect(), listener.subscribe(channel)])
    return {
      async acquire(name, ttl) {
        const id = randomUUID()
        const line = `${name}:line`
        for (;;) {
          const woken = new Promise<void>(resolve => wakes.set(id, resolve))
          if ((await scripts.take(name, line, id, channel, ttl)) === 1) break
          await woken
        }
        wakes.delete(id)
        return () => scripts.pass(name, line)
      },
      close: () => Promise.all([client.quit(), listener.quit()]),
    }
  },
}
