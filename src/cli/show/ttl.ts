import { randomBytes } from 'node:crypto'
import { connect, type Locks } from '../../index.ts'
import { COMMON, parse, seeHelp } from '../arguments.ts'
import { closeLocks } from '../close-locks.ts'
import { counted } from '../counted.ts'
import { formatDuration, parseDuration } from '../duration.ts'
import { EXIT, Usage } from '../failure.ts'
import { Output } from '../output.ts'
import { Signals } from '../signals.ts'
import { storeUrl } from '../store-url.ts'
import { INTERVAL, measure } from './ttl-measurement.ts'
import { report, text } from './ttl-report.ts'

/** The ttl of the measured lease in milliseconds: long enough to tolerate slow answers. ZooKeeper grants up to 24 s. */
const TTL = 20_000

const SHORTEST = 1_000
const LONGEST = 86_400_000

/** Milliseconds between two lines of progress that go to a file or pipe. */
const PROGRESS_INTERVAL = 10_000

/** `holdfast ttl`: measures heartbeats and advises a ttl. Returns the exit code. */
export async function ttl(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse('ttl', [...args], { ...COMMON, for: { type: 'string' } })
  if (positionals.length > 0)
    throw new Usage(`ttl takes options only, no argument such as ${positionals[0]}; ${seeHelp('ttl')}`)
  const duration = parseDuration(values.for ?? '60s', '--for')
  if (duration < SHORTEST || duration > LONGEST) throw new Usage(`--for ${values.for}: expected from 1s to 24h`)
  const output = new Output(values)
  const { stop } = new Signals('before the measurement')
  const locks = await connect(storeUrl(values.store, output), { lazy: true })
  try {
    return await measureOf(locks, duration, output, stop)
  } catch (error) {
    return output.fail(error)
  } finally {
    await closeLocks(locks, output)
  }
}

async function measureOf(locks: Locks, duration: number, output: Output, stop: AbortSignal): Promise<number> {
  const name = `holdfast-ttl-${randomBytes(8).toString('hex')}`
  const note = 'holdfast ttl measures heartbeats'
  await locks.inspect(name) // this fails at once; a failed claim would first be withdrawn, for up to 5 s
  await using lease = await locks.acquire(name, { ttl: TTL, heartbeat: false, wait: 0, note, signal: stop })
  const rate = 1_000 / INTERVAL
  output.info(
    'measuring',
    `measures for ${formatDuration(duration)} at up to ${rate} renewals a second; Ctrl-C ends it early`,
    {
      name,
      duration,
      rate,
    },
  )
  const measurement = await measure(lease, duration, stop, progressOn(output, duration))
  const { lost } = measurement
  if (lost) output.failed('lost', `the measurement ended early: ${lost.message}`)
  else if (stop.aborted) output.info('stopped', `stopped after ${formatDuration(measurement.duration)}`)
  const result = report(measurement, locks.store)
  output.print(result, text(result))
  return result.advice ? 0 : EXIT.inconclusive
}

function progressOn(output: Output, duration: number): Parameters<typeof measure>[3] {
  let last = 0
  return (elapsed, latencies, failed) => {
    if (elapsed - last < (process.stderr.isTTY ? 1_000 : PROGRESS_INTERVAL)) return
    last = elapsed
    const { length: heartbeats } = latencies
    const took = heartbeats > 0 ? `, the last took ${latencies.at(-1)?.toFixed(1)} ms` : ''
    const text = `${formatDuration(elapsed)} of ${formatDuration(duration)}: ${counted(heartbeats, 'heartbeat')}${took}, ${failed} failed`
    output.info('progress', text, { elapsed, heartbeats, failed })
  }
}
