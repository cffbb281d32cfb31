import { type Lease, subscribe } from '../../index.ts'
import { closeLocks } from '../close-locks.ts'
import { formatDuration } from '../duration.ts'
import { messageOf } from '../failure.ts'
import { Output } from '../output.ts'
import { Signals } from '../signals.ts'
import { storeUrl } from '../store-url.ts'
import { connectedTo } from './connecting.ts'
import { parseElect } from './elect-options.ts'
import { checkPlatform, hold } from './hold.ts'
import { reportHolders, reportLease } from './progress.ts'

/** `holdfast elect`: runs a command while this process leads, until a signal ends it. Returns the exit code. */
export async function elect(args: readonly string[]): Promise<number> {
  const options = parseElect(args)
  checkPlatform('elect')
  const output = new Output(options)
  const url = storeUrl(options.store, output)
  const signals = new Signals('while the command did not run')
  const { name, ttl, note, owner, pause, maxPause } = options
  // Create the metrics before the locks, because they count from their creation.
  const metrics = options.metrics && new (await import('./metrics.ts')).CommandMetrics(name, options.metrics, output)
  // A candidate waits for a store that is down, just as it waits for the leader.
  const locks = await connectedTo(url, { ttl, timeout: Number.POSITIVE_INFINITY, signal: signals.stop }, output)
  const done = new AbortController()
  let exit = 0

  const lead = async (lease: Lease): Promise<void> => {
    const { token } = lease
    output.info('leading', `this process leads ${name}, with token ${token}`, { name, token })
    const { hasRun, isUnrunnable, ...held } = await hold(lease, url, options, output, signals)
    exit = held.exit
    signals.forward(undefined)
    if (signals.received || isUnrunnable) done.abort()
    else if (lease.signal.aborted)
      throw lease.signal.reason // the lease was lost, which is reported
    else if (!hasRun) throw new Error('the command was not started')
    else if (exit !== 0) throw new Error(`the command ended with ${exit}`)
    else reportDelay(output, name, 'the command ended with 0', pause)
  }

  try {
    reportHolders(output)
    reportLease([name], output)
    subscribe('leadership_delayed', event =>
      reportDelay(output, name, messageOf(event.error), event.delay, event.failures),
    )
    const election = locks.election(name, { ttl, note, owner, pause, maxPause })
    const campaign = async (): Promise<number> => {
      await election.run({ signal: AbortSignal.any([signals.stop, done.signal]) }, lead)
      return signals.stop.aborted ? output.fail(signals.stop.reason) : exit
    }
    return await (metrics ? metrics.during(campaign) : campaign())
  } catch (error) {
    return output.fail(error)
  } finally {
    await closeLocks(locks, output)
  }
}

/** Reports a failure. Only the first failure in a row is an error, which `--quiet` does not hide. */
function reportDelay(output: Output, name: string, cause: string, delay: number, failures = 0): void {
  const text = `${cause}; the next campaign for ${name} is in ${formatDuration(delay)}`
  if (failures === 1) output.failed('delayed', text, { name, delay })
  else output.info('delayed', text, { name, delay })
}
