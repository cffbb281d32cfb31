import { connect, type Lease, LeaseError, type Locks } from '../../index.ts'
import { closeLocks } from '../close-locks.ts'
import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { Output } from '../output.ts'
import { Signals } from '../signals.ts'
import { storeUrl } from '../store-url.ts'
import { checkPlatform, hold } from './hold.ts'
import { describeHolder } from './holder.ts'
import { reportHolders, reportLease } from './progress.ts'
import { Retention } from './retention.ts'
import { parseRun, type RunOptions } from './run-options.ts'

/** `holdfast run`: holds a lease while a command runs. Returns the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const options = parseRun(args)
  checkPlatform('run')
  const output = new Output(options)
  const url = storeUrl(options.store, output)
  const signals = new Signals()
  // Before the lease, because metrics count from their creation.
  const metrics =
    options.metrics && new (await import('./metrics.ts')).CommandMetrics(options.name, options.metrics, output)
  reportLease(options.name, output)
  const locks = await connect(url)
  try {
    const retention = new Retention(locks, options, output)
    const lease = await acquire(locks, options, output, signals)
    if (typeof lease === 'number') return lease
    if (await retention.shouldSkip(lease)) return 0
    const work = (): Promise<number> => hold(lease, url, options, output, signals, retention.start(signals))
    return await (metrics ? metrics.duringRun(lease, work) : work())
  } catch (error) {
    return output.fail(error)
  } finally {
    await closeLocks(locks, output)
  }
}

/** The lease, or the exit code if the name is busy. */
async function acquire(locks: Locks, options: RunOptions, output: Output, signals: Signals): Promise<Lease | number> {
  const { name, ttl, wait, note, owner } = options
  if (wait > 0) reportHolders(name, output)
  try {
    return await locks.acquire(name, { ttl, wait, signal: signals.stop, note, owner })
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'ACQUIRE_TIMEOUT') throw error
    const { holder } = error
    const [text, exit] =
      wait > 0
        ? [`${name} was not acquired within ${formatDuration(wait)}: it is ${describeHolder(holder)}`, EXIT.timeout]
        : [`${name} is ${describeHolder(holder)}`, options.busyExit]
    return output.fail(new LeaseError('ACQUIRE_TIMEOUT', text, { lease: name, holder }), exit)
  }
}
