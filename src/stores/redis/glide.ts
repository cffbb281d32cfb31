import { asItIs, can, type RedisDriver, type Wire } from './client.ts'

interface Client {
  customCommand(args: string[], options?: object): Promise<unknown>
}

/**
 * valkey-glide. It has no duplicate, and receives only messages for which it was created. Its requests have a timeout of
 * their own and are never sent again, and each of ours has a deadline.
 */
export function glide(client: object): RedisDriver | undefined {
  if (!can(client, 'customCommand')) return undefined
  const known = client as unknown as Client
  const isCluster = can(client, 'fcallWithRoute')
  const call = (args: readonly string[]): Promise<unknown> => known.customCommand([...args])
  const masters: Wire['masters'] = async () => {
    const ranges = (await call(['CLUSTER', 'SLOTS'])) as [number, number, [string, number]][]
    const addresses = new Map(ranges.map(([, , [host, port]]) => [`${host}:${port}`, { host, port }]))
    return Array.from(addresses.values(), address => (args: readonly string[]) => {
      return known.customCommand([...args], { route: { type: 'routeByAddress', ...address } })
    })
  }
  return asItIs(isCluster, call, isCluster ? masters : undefined)
}
