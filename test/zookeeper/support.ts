import { randomBytes } from 'node:crypto'
import type { Claim, Grant, Store } from '../../src/store.ts'
import { type ZooKeeperOptions, zookeeper } from '../../src/stores/zookeeper/index.ts'

/** Never aborts. */
export const signal: AbortSignal = new AbortController().signal

export function claimOf(name: string, wishes: Partial<Claim> = {}): Claim {
  return { name, id: randomBytes(16).toString('hex'), owner: 'test', ttl: 10_000, note: '', queue: false, ...wishes }
}

/** What must be had. */
export async function hold(store: Store, claim: Claim): Promise<Grant> {
  const answer = await store.acquire(claim, signal)
  if (!answer.held) throw new Error(`${claim.name} is held by ${answer.holder?.owner}`)
  return answer
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

interface Address {
  readonly port: number
}

/** A store over these servers, or ways to servers, of this machine. */
export function storeOf(servers: Address | readonly Address[], options: Partial<ZooKeeperOptions> = {}): Store {
  const all = Array.isArray(servers) ? servers : [servers]
  return zookeeper({ servers: all.map(({ port }: Address) => `127.0.0.1:${port}`), ...options })
}
