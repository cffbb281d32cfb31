import { Redis } from 'ioredis'
import type { Place } from './peer.ts'

/** One ioredis for each server: what Holdfast, the floors and the peers are given is the same. None is connected yet. */
export function clientsOf({ host, ports }: Place): [Redis, ...Redis[]] {
  const [first, ...rest] = ports.map(port => new Redis({ host, port, lazyConnect: true }))
  if (!first) throw new Error('there is no server')
  return [first, ...rest]
}

/** The same, connected; an error of one that cannot be reached is that of its commands. */
export async function connectedTo(place: Place): Promise<[Redis, ...Redis[]]> {
  const clients = clientsOf(place)
  for (const client of clients) client.on('error', () => {})
  await Promise.all(clients.map(client => client.connect()))
  return clients
}

export function quit(clients: readonly Redis[]): Promise<unknown> {
  return Promise.all(clients.map(client => client.quit()))
}
