import { randomBytes } from 'node:crypto'
import type { Claim, LeaseRecord, Query, Store } from '../../src/store.ts'
import { type EtcdOptions, etcd } from '../../src/stores/etcd/index.ts'
import type { EtcdServer } from '../servers/etcd.ts'

/** Never aborts. */
export const signal: AbortSignal = new AbortController().signal

export function claimOf(name: string, wishes: Partial<Claim> = {}): Claim {
  return { name, id: randomBytes(16).toString('hex'), owner: 'test', ttl: 10_000, note: '', queue: false, ...wishes }
}

/** The token of what must be had. */
export async function hold(store: Store, claim: Claim): Promise<bigint> {
  const answer = await store.acquire(claim, signal)
  if (!answer.held) throw new Error(`${claim.name} is held by ${answer.holder?.owner}`)
  return answer.token
}

export function look(store: Store, query: Query): Promise<LeaseRecord[]> {
  return Array.fromAsync(store.inspect(query, signal))
}

/** What it rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: string; retryable?: boolean }> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not reject')
}

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

/** What is at a key, past the store. */
export function read(server: EtcdServer, key: string): Promise<Found> {
  return server.call('kv/range', { key: base64(key) })
}
