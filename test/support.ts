import { randomBytes } from 'node:crypto'
import type { Busy, Claim, Grant, LeaseRecord, Query, Store } from '../src/contract/store.ts'

/** Never aborts. */
export const signal: AbortSignal = new AbortController().signal

export function claimOf(name: string, wishes: Partial<Claim> = {}): Claim {
  return { name, id: randomBytes(16).toString('hex'), owner: 'test', ttl: 10_000, note: '', queue: false, ...wishes }
}

export async function acquire(store: Store, claim: Claim): Promise<Grant | Busy> {
  return store.acquire(claim, signal)
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
