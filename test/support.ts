import { randomBytes } from 'node:crypto'
import { isLease } from '../src/contract/record.ts'
import type { Busy, Claim, Grant, LeaseRecord, NodeRecord, Query, Store } from '../src/contract/store.ts'

/** Never aborts. */
export const signal: AbortSignal = new AbortController().signal

export function claimOf(name: string, parameters: Partial<Claim> = {}): Claim {
  return {
    name,
    id: randomBytes(16).toString('hex'),
    owner: 'test',
    ttl: 10_000,
    note: '',
    queue: false,
    ...parameters,
  }
}

export async function acquire(store: Store, claim: Claim): Promise<Grant | Busy> {
  return store.acquire(claim, signal)
}

/** Acquires the claim and returns its token. Throws if the name is busy. */
export async function hold(store: Store, claim: Claim): Promise<bigint> {
  const answer = await store.acquire(claim, signal)
  if (!answer.held) throw new Error(`${claim.name} is held by ${answer.holder?.owner}`)
  return answer.token
}

/** The leases and waiters in the store. */
export async function look(store: Store, query: Query): Promise<LeaseRecord[]> {
  return (await Array.fromAsync(store.inspect(query, signal))).filter(isLease)
}

/** The states of the store's servers, also if too few of them answer to grant a lease. */
export async function nodesOf(store: Store): Promise<NodeRecord[]> {
  const nodes: NodeRecord[] = []
  try {
    for await (const record of store.inspect({ name: ' ' }, signal)) if (!isLease(record)) nodes.push(record)
  } catch (error) {
    if (nodes.length === 0) throw error
  }
  return nodes
}

/** The error that the promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: string; retryable?: boolean }> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('the promise did not reject')
}
