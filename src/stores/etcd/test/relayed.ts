// One server for all tests of a file, and for each test a relay to it and two stores. Importing this module provides them.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../../lab/servers/etcd.ts'
import type { Store } from '../../../contract/store.ts'
import { type HttpRelay, startRelay } from './relay.ts'
import { readHeld, storeOf } from './support.ts'

export let server: EtcdServer
export let relay: HttpRelay
/** Through the relay, and past it. */
export let store: Store
export let other: Store

beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.stop())

beforeEach(async () => {
  relay = await startRelay(server)
  ;[store, other] = [storeOf([relay]), storeOf([server])]
})
afterEach(async () => {
  await Promise.all([store[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
  await relay[Symbol.asyncDispose]()
})

let count = 0
export const name = (): string => `name ${count++}`

/** The lease of the key by which a name is held. */
export async function leaseOf(held: string): Promise<string | undefined> {
  return (await readHeld(server, held)).kvs?.[0]?.lease
}
