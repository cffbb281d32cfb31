import type { EtcdServer } from '../../../../lab/servers/etcd.ts'
import type { Store } from '../../../contract/store.ts'
import { type EtcdOptions, etcd } from '../index.ts'

export { claimOf, failureOf, hold, look, signal } from '../../../../test/support.ts'

export function storeOf(endpoints: readonly { readonly port: number }[], options: EtcdOptions = {}): Store {
  return etcd({ endpoints: endpoints.map(({ port }) => `127.0.0.1:${port}`), ...options })
}

/** A key as the gateway wants it. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

interface Found {
  readonly kvs?: readonly { readonly value: string; readonly create_revision: string; readonly lease?: string }[]
  readonly header: { readonly revision: string }
}

/** The value of a key, read without the store. */
export function read(server: EtcdServer, key: string): Promise<Found> {
  return server.call('kv/range', { key: base64(key) })
}

/** The keys by which claims hold a name. */
export function readHeld(server: EtcdServer, name: string): Promise<Found> {
  const [key, range_end] = [`holdfast\t${name}\theld\t`, `holdfast\t${name}\theld\n`].map(base64)
  return server.call('kv/range', { key, range_end })
}
