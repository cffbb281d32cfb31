import { connect, type Lease, LeaseError, type Locks, subscribe } from '../index.ts'
import { heldBy } from './describe.ts'
import { formatDuration } from './duration.ts'
import { EXIT, Failure } from './failure.ts'
import { hold } from './hold.ts'
import { close } from './open.ts'
import { Output } from './output.ts'
import { parseRun, type RunOptions } from './run-options.ts'
import { Signals } from './signals.ts'
import { storeUrl } from './where.ts'

/** `holdfast run`: holds a lease while a command runs. Answers the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const options = parseRun(args)
  if (process.platform === 'win32') {
    throw new Failure(EXIT.unavailable, 'UNSUPPORTED', 'holdfast run needs process groups: it runs on Linux and macOS')
  }
  const output = new Output(options)
  const url = storeUrl(options.store, output)
  const signals = new Signals()
  const locks = await connect(url)
  try {
    const lease = await acquire(locks, options, output, signals)
    return typeof lease === 'number' ? lease : await hold(lease, url, options, output, signals)
  } catch (error) {
    return output.fail(error)
  } finally {
    await close(locks, output)
  }
}

/** The lease, or the exit code when another holds it. */
async function acquire(locks: Locks, options: RunOptions, output: Output, signals: Signals): Promise<Lease | number> {
  const { name, ttl, wait, note, owner } = options
  if (wait > 0) tellHolders(name, output)
  try {
    return await locks.acquire(name, { ttl, wait, signal: signals.stop, note, owner })
  } catch (error) {
    if (!LeaseError.is(error) || error.code !== 'ACQUIRE_TIMEOUT') throw error
    const { holder } = error
    const [text, exit] =
      wait > 0
        ? [`${name} was not had within ${formatDuration(wait)}: it is ${heldBy(holder)}`, EXIT.timeout]
        : [`${name} is ${heldBy(holder)}`, options.busyExit]
    return output.fail(new LeaseError('ACQUIRE_TIMEOUT', text, { lease: name, holder }), exit)
  }
}

/** One line whenever the holder that is waited for is another. */
function tellHolders(name: string, output: Output): void {
  let last: string | undefined
  subscribe('lease_busy', ({ holder, ahead }) => {
    const key = holder && `${holder.owner} ${holder.token}`
    if (!holder || key === last) return
    last = key
    const line = ahead ? `; ${ahead} ahead` : ''
    output.tell('waiting', `${name} is ${heldBy(holder)}, waiting${line}`, { name, holder, ahead })
  })
}
