import type { Lease, Locks, Permit } from '../../src/index.ts'
import { pick, type Random } from '../faults/random.ts'
import type { Mark, Role, Shared } from '../judge/shared.ts'

/** What a contender acquires next. */
export interface Job {
  /** Of a shared name. */
  readonly role?: Role
  acquire(stop: AbortSignal): Promise<Lease>
}

/** Chooses the next job: the lease of the name, or for a shared name one or two permits, a reader or a writer. */
export function jobOf(locks: Locks, name: string, shared: Shared | undefined, ttl: number, random: Random): Job {
  if (!shared) return { acquire: signal => locks.acquire(name, { wait: 10 * ttl, signal }) }
  // They wait until they are served, and the judge looks for how long.
  if (shared.kind === 'semaphore') {
    const hasQueue = locks.store.guarantees.order === 'first come, first served'
    const permits = random() < 0.2 && hasQueue ? Math.min(2, shared.limit) : 1
    const semaphore = locks.semaphore(name, { limit: shared.limit })
    return { role: 'permit', acquire: signal => semaphore.acquire({ permits, signal }) }
  }
  const role = pick(random, ['reader', 'reader', 'writer'] as const)
  const { [role]: way } = locks.readWrite(name)
  return { role, acquire: signal => way.acquire({ signal }) }
}

/** The slots of a permit; `undefined` for a lease. */
export function marksOf(lease: Lease | Permit): readonly Mark[] | undefined {
  if (!('slots' in lease)) return undefined
  return lease.slots.map(slot => ({ slot, token: lease.token.toString() }))
}

/** The names of a run that are shared: semaphores, and where the engine has them, readers and writers in turn. */
export function sharedOf(
  names: readonly string[],
  limit: number,
  hasReaders: boolean,
): Readonly<Record<string, Shared>> {
  const isSemaphore = (index: number): boolean => index % 2 === 0 || !hasReaders
  return Object.fromEntries(
    names.map((name, index) => [name, isSemaphore(index) ? { kind: 'semaphore', limit } : { kind: 'readWrite' }]),
  )
}
