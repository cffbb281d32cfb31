import { randomUUID } from 'node:crypto'
import { engineOf } from '../../engines.ts'
import { connect, LeaseError, type Locks } from '../../index.ts'
import { closeLocks } from '../close-locks.ts'
import { messageOf } from '../failure.ts'
import type { Output } from '../output.ts'
import { type Finding, isRefusal, ok, problem, warning } from './finding.ts'

/** The prefix of the names that the trial uses. */
export const TRIED = 'holdfast-doctor-'

/** The longest round trip, in ms, that is not reported as slow. */
const SLOW = 100

/** The ttl of the trial, in ms. If `holdfast` is killed, the name is free after that time. */
const TTL = 5_000

/** Tries a lease on a new name and removes the name, also after `signal`. Needs the permissions that every user needs. */
export async function tryLease(url: string, output: Output, signal: AbortSignal): Promise<Finding[]> {
  const name = `${TRIED}${randomUUID()}`
  const locks = await connect(url, { ttl: TTL, lazy: true })
  const findings: Finding[] = []
  let isStored = false
  const stored = (): void => {
    isStored = true
  }
  try {
    findings.push(await attempt(locks, name, signal, stored))
  } catch (error) {
    if (!LeaseError.is(error)) throw error
    const advice = `do what the message says, then run doctor again; docs/reference/errors.md explains ${error.code}`
    findings.push(problem('lease', error.message, 'the store cannot serve leases', advice))
  } finally {
    await closeLocks(locks, output)
    if (isStored || signal.aborted) findings.push(...(await forget(url, name)))
  }
  return findings
}

/** Deletes the free name. */
async function forget(url: string, name: string): Promise<Finding[]> {
  try {
    await engineOf(url).forgetNames?.(url, [name])
    return []
  } catch (error) {
    return [leftover(name, error)]
  }
}

/** The finding for a free name that the store keeps because of this error. */
export function leftover(name: string, error: unknown): Finding {
  const id = 'leftover'
  // This is no warning: the permissions that the documentation recommends do not include deletion.
  if (isRefusal(error)) return ok(id, `this user may not delete, so the store keeps the free name ${name}`)
  const what = `the free name ${name} could not be deleted (${messageOf(error)})`
  return warning(id, what, 'the store keeps it', 'do what the message says, then delete it or ignore it')
}

/** Acquires the name, changes its note, waits for it, hands it over, and releases it. `stored`: the store has the name. */
export async function attempt(locks: Locks, name: string, signal: AbortSignal, stored: () => void): Promise<Finding> {
  const first = await locks.acquire(name, { wait: 0, signal })
  stored()
  const trip = await quickest(() => first.annotate('holdfast doctor'), signal)
  const next = locks.acquire(name, { wait: TTL, signal })
  next.catch(() => {}) // it may reject while the release is pending, and is awaited after that
  await first.release()
  await (await next).release()
  const what = `acquired, handed over and released a lease; a change takes ${trip} ms`
  if (trip < SLOW) return ok('lease', what)
  const why = 'renewals and handovers take as long'
  return warning('lease', what, why, 'run close to the server, and use a ttl of at least 100 round trips')
}

/** Milliseconds of the quickest of several calls. A pause of this machine says nothing about the store. */
async function quickest(call: () => Promise<unknown>, signal: AbortSignal): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let calls = 0; calls < 5; calls += 1) {
    signal.throwIfAborted()
    const start = performance.now()
    await call()
    least = Math.min(least, performance.now() - start)
  }
  return Math.round(least)
}
