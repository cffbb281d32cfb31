import { asItIs, can, type RedisDriver, type Wire } from './client.ts'

interface Client {
  customCommand(args: string[], options?: object): Promise<unknown>
}

/**
 * The driver for valkey-glide. It cannot be duplicated, so the caller's client is used. Its requests have a timeout and are
 * never sent again, and each of our requests has a deadline.
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
