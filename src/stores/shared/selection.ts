import type { Busy, Claim, Grant, LeaseRecord, NoneGranted, Selection, SomeGranted } from '../../contract/store.ts'

/** What `select` needs of a store. */
export interface Names {
  acquire(claim: Claim): Grant | Busy
  /** Does the claim hold its name? */
  holds(claim: Claim): boolean
  /** Would `acquire` grant it? */
  isFree(claim: Claim): boolean
  /** The claim waits no more. Unlike after a release, it may be asked for again. */
  leave(claim: Claim): void
  release(claim: Claim): void
  /** Does nobody hold the name, or wait for it? */
  isUnused(name: string): boolean
  holder(name: string): LeaseRecord | undefined
}

/** `acquireSome` (R14), for a store that carries out one request at a time. */
export function select(names: Names, { claims, want, gate }: Selection): SomeGranted | NoneGranted {
  const acquire = (taken: readonly Claim[]): SomeGranted => {
    const grants = claims.map(claim => (taken.includes(claim) ? granted(names.acquire(claim)) : undefined))
    return { held: true, grants }
  }
  // A repeated request gets what its claim holds, also if it is stale: it must not take another name, or end what is held.
  const held = claims.filter(claim => names.holds(claim))
  if (held.length >= want) return acquire(held)
  const isOpen = names.isUnused(gate.name)
  if (!isOpen) {
    const answer = gate.queue ? names.acquire(gate) : undefined
    if (!answer?.held) {
      if (answer) for (const claim of claims) names.leave(claim) // if it has lost the gate
      return { held: false, isGated: true, free: 0, wait: answer }
    }
  }
  const free = claims.filter(claim => names.isFree(claim))
  if (free.length >= want) {
    const answer = acquire(free.slice(0, want))
    if (gate.queue) for (const claim of claims) names.leave(claim)
    if (!isOpen) names.release(gate)
    return answer
  }
  const holder = claims.map(({ name }) => names.holder(name)).find(found => found !== undefined)
  const few: NoneGranted = { held: false, isGated: false, free: free.length, holder }
  if (!gate.queue) return few
  const answer = names.acquire(gate)
  if (!answer.held) return { held: false, isGated: true, free: 0, wait: answer } // it was withdrawn
  const waits = claims.map(claim => names.acquire({ ...claim, queue: true }))
  // It asks again when one of them may be free, and to keep the gate.
  const retryAfter = Math.min(gate.ttl / 3, ...waits.map(wait => (wait.held ? 0 : wait.retryAfter)))
  return { ...few, wait: { retryAfter } }
}

function granted(answer: Grant | Busy): Grant | undefined {
  return answer.held ? answer : undefined
}
