import { randomUUID } from 'node:crypto'
import { engineOf } from '../../engines.ts'
import { connect, LeaseError, type Locks } from '../../index.ts'
import { closeLocks } from '../close-locks.ts'
import type { Output } from '../output.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** What the names that are tried begin with. */
export const TRIED = 'holdfast-doctor-'

/** Longer round trips are reported, in ms. */
const SLOW = 100

/** The ttl of the trial, in ms. If `holdfast` is killed, the name is free after it. */
const TTL = 5_000

/** Tries a name of its own and removes it, also after `signal`. Needs the permissions of every user of the store. */
export async function tryLease(url: string, output: Output, signal: AbortSignal): Promise<Finding[]> {
  const name = `${TRIED}${randomUUID()}`
  const locks = await connect(url, { ttl: TTL })
  const findings: Finding[] = []
  let isStored = false
  const stored = (): void => {
    isStored = true
  }
  try {
    findings.push(await attempt(locks, name, signal, stored))
  } catch (error) {
    if (!LeaseError.is(error)) throw error
    const advice = `docs/reference/errors.md explains ${error.code}`
    findings.push(problem('lease', error.message, 'the store cannot serve leases', advice))
  } finally {
    await closeLocks(locks, output)
    if ((isStored || signal.aborted) && !(await isForgotten(url, name)))
      // Not a warning: the permissions that the documentation advises do not include it.
      findings.push(ok('leftover', `this user may not delete, so the store keeps the free name ${name}`))
  }
  return findings
}

async function isForgotten(url: string, name: string): Promise<boolean> {
  try {
    await engineOf(url).forgetNames?.(url, [name])
    return true
  } catch {
    return false
  }
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
  const what = `a lease was acquired, handed over and released; a change of it took ${trip} ms`
  if (trip < SLOW) return ok('lease', what)
  const why = 'renewals and handovers take as long'
  return warning('lease', what, why, 'run close to the server, and use a ttl of at least 100 round trips')
}

/** Milliseconds of the quickest of some calls, because a pause of this machine says nothing about the store. */
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
