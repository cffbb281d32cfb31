import { checkKeys, invalid } from '../contract/check.ts'
import type { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import { Cancel } from '../contract/request.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { warn } from '../contract/warnings.ts'
import { Acquisition } from './acquisition.ts'
import type { HeldLease } from './held-lease.ts'
import type { Host } from './host.ts'
import { Marker } from './marker.ts'
import { type OnceOptions, onceKeys } from './options.ts'
import type { Tried, Work } from './work.ts'

/** The result of `once`: the work ran, or why it did not. */
export type Once<Result> =
  | Tried<Result>
  | {
      readonly ran: false
      /** The work has succeeded within the last `within` ms. */
      readonly why: 'ran'
      /** What the store remembers of that run: its `owner`, and in `remaining` how long it counts. */
      readonly holder: LeaseRecord
    }

/** Runs `work` under a lease on `name` unless the name has a marker. Writes the marker after a success. */
export async function once<Result>(
  host: Host,
  name: string,
  options: OnceOptions,
  work: Work<Lease, Result>,
): Promise<Once<Result>> {
  if (typeof work !== 'function' || options?.within === undefined)
    throw invalid('once needs options with within: once(name, { within: 3_600_000 }, work)')
  checkKeys(options, onceKeys, 'once')
  const { calls, signals, closing } = host
  const terms = host.terms('using', options)
  const { signal } = terms
  const marker = new Marker(host, name, options.within)
  const cancel = new Cancel()
  const stops = [signal, closing].map(each => signals.onAbort(each, reason => cancel.cancel(reason)))
  let found: LeaseRecord | undefined
  const hasRun = (holder: LeaseRecord) => ({ ran: false, why: 'ran', holder }) as const
  const workUnlessFound = async (held: HeldLease): Promise<Result | undefined> => {
    found = await marker.find(cancel) // a run may have succeeded since the first look
    if (found) return undefined
    cancel.throwIfCancelled()
    const lost = held.check()
    if (lost) throw lost
    const began = host.clock.now()
    const result = await work(held.handle)
    // The marker is written before the release, so that waiters find it. A lost lease makes `calls.run` reject.
    const failure = held.check() ? undefined : await marker.write(held, began)
    if (failure) {
      const message = `${JSON.stringify(name)} ran, but may run again too soon, because the store did not mark it`
      warn('HOLDFAST_NOT_MARKED', `${message}: ${failure.message}`, name)
    }
    return result
  }
  try {
    // With this look most replicas never hold the name. If the store fails here, the acquire retries and reports why.
    found = await marker.find(cancel).catch(() => undefined)
    if (found) return hasRun(found)
    cancel.throwIfCancelled()
    const held = await calls.hold(name, { ...terms, wait: options.wait ?? 0 }, each => each)
    if (held instanceof Acquisition) return { ran: false, why: 'held', holder: held.timeout().holder }
    const end = (): Promise<LeaseError | undefined> => {
      const ending = held.end().then(lost => lost && marker.remove().then(() => lost))
      host.inBackground(ending) // `close` waits for the removal
      return ending
    }
    const { handle } = held
    const holding = {
      handle,
      get signal() {
        return held.signal
      },
      abort: held.abort.bind(held),
      end,
    }
    const result = await calls.run(holding, () => workUnlessFound(held), signal)
    return found ? hasRun(found) : { ran: true, result: result as Result }
  } catch (error) {
    if (found) return hasRun(found)
    throw error
  } finally {
    for (const stop of stops) stop()
  }
}
