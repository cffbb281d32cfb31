import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '../../../../lab/servers/until.ts'
import type { Locks } from '../../../create-locks.ts'

setFlagsFromString('--expose-gc')
/** Collects garbage. */
export const collect: () => void = runInNewContext('gc')

/** Lets all leases be renewed, and unreferenced objects be collected. */
export async function renewedAndCollected(locks: Locks): Promise<void> {
  const renewals = locks.advice().heartbeats
  await until('every lease is renewed', () => locks.advice().heartbeats >= renewals + 8)
  const marker = new WeakRef({})
  await until('garbage is collected', () => {
    collect()
    return marker.deref() === undefined
  })
  await new Promise(resolve => setTimeout(resolve)) // the turn in which finalizers run
}
