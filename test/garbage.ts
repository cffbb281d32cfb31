import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { MockInstance } from 'vitest'
import { until } from '../lab/servers/until.ts'
import type { Locks } from '../src/create-locks.ts'

// Vitest does not start its processes with --expose-gc.
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void
/** Collects garbage. */
export const collect = (): void => gc()
/** Collects what has been created since the last collection and is not needed any more, but nothing older. */
export const collectYoung = (): void => gc({ type: 'minor' })

/** Waits for so many renewals, and lets unreferenced objects be collected. */
export async function renewedAndCollected(locks: Locks, renewals: number): Promise<void> {
  const before = locks.advice().heartbeats
  await until('every lease is renewed', () => locks.advice().heartbeats >= before + renewals)
  const marker = new WeakRef({})
  await until('garbage is collected', () => {
    collect()
    return marker.deref() === undefined
  })
  await new Promise(resolve => setTimeout(resolve)) // the turn in which finalizers run
}

/** The warnings of leases that were dropped. A busy machine may cause others, such as of a ttl that is too short. */
export function droppedWarnings(warn: MockInstance<typeof process.emitWarning>): unknown[] {
  return warn.mock.calls.filter(([, options]) => (options as { code?: string }).code === 'HOLDFAST_LEASE_DROPPED')
}
