import { type Acquirable, connect, type Lease, LeaseError, type Locks, type Permit } from '../../index.ts'
import { closeLocks } from '../close-locks.ts'
import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { Output } from '../output.ts'
import { Signals } from '../signals.ts'
import { storeUrl } from '../store-url.ts'
import { connectedTo } from './connecting.ts'
import type { Held } from './held.ts'
import { checkPlatform, hold, type Release } from './hold.ts'
import { describeHolder } from './holder.ts'
import { reportHolders, reportLease, reportSharedWait, seeAll } from './progress.ts'
import { Retention } from './retention.ts'
import { parseRun, type RunOptions, type Sharing } from './run-options.ts'

/** Milliseconds to wait for the store to answer for the first time. */
const CONNECT_TIMEOUT = 5_000

/** `holdfast run`: holds a lease while a command runs. Returns the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const options = parseRun(args)
  checkPlatform('run')
  const output = new Output(options)
  const url = storeUrl(options.store, output)
  const signals = new Signals()
  // Create the metrics before the lease, because they count from their creation.
  const metrics =
    options.metrics && new (await import('./metrics.ts')).CommandMetrics(options.name, options.metrics, output)
  reportLease([options.name, ...options.also], output)
  const unasked = await connect(url, { ttl: options.ttl, lazy: true })
  Retention.check(unasked, options) // throws even if the store does not answer
  await unasked.close()
  const locks = await connectedTo(url, { ttl: options.ttl, timeout: CONNECT_TIMEOUT, signal: signals.stop }, output)
  try {
    const retention = new Retention(locks, options, output)
    if (await retention.shouldSkip()) return 0
    const lease = await acquire(locks, options, output, signals)
    if (typeof lease === 'number') return lease
    if (await retention.shouldSkip(lease)) return 0
    const release = retention.start(signals)
    const work = async (releaseAfter: Release): Promise<number> =>
      (await hold(lease, url, options, output, signals, releaseAfter)).exit
    return await (metrics ? metrics.duringRun(lease, work, release) : work(release))
  } catch (error) {
    return output.fail(error)
  } finally {
    await closeLocks(locks, output)
  }
}

/** Acquires the lease, the permit, or the leases on all names. Resolves to the exit code if one of them is busy. */
async function acquire(locks: Locks, options: RunOptions, output: Output, signals: Signals): Promise<Held | number> {
  const { name, also, sharing, ttl, wait, note, owner } = options
  if (wait > 0 && sharing) reportSharedWait(name, output)
  else if (wait > 0) reportHolders(output)
  try {
    const asked = { ttl, wait, signal: signals.stop, note, owner }
    if (sharing) return await shared(locks, name, sharing).acquire(asked)
    return await (also.length > 0 ? locks.all([name, ...also]).acquire(asked) : locks.acquire(name, asked))
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'BUSY') throw error
    const { holder, leaseName = name, waited } = error
    const shown = sharing ? name : leaseName
    const state = describeHolder(holder, sharing !== undefined) + (sharing ? `; ${seeAll(name)}` : '')
    const [text, exit] =
      wait > 0
        ? [`${shown} was not acquired within ${formatDuration(wait)}: it is ${state}`, EXIT.timeout]
        : [`${shown} is ${state}`, options.busyExit]
    return output.fail(new LeaseError('BUSY', text, { leaseName: shown, holder, waited }), exit)
  }
}

function shared(locks: Locks, name: string, sharing: Sharing): Acquirable<Lease | Permit> {
  return typeof sharing === 'string' ? locks.readWrite(name)[sharing] : locks.semaphore(name, sharing)
}
