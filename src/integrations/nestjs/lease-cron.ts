import { Inject } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import { checkKeys, invalid } from '../../contract/check.ts'
import { surround } from '../../contract/surrounding.ts'
import type { Locks } from '../../create-locks.ts'
import { Ticks } from '../ticks.ts'
import { type Method, methodOf, replace } from './method.ts'
import { LOCKS } from './token.ts'

export interface LeaseCronOptions {
  /**
   * Milliseconds for which a scheduled time is remembered: more than the clocks of the replicas differ.
   * @default 30,000, or as long as the store can
   */
  readonly keep?: number | undefined
}

/** What is read of the jobs of `@nestjs/schedule`. */
interface Schedule {
  readonly timeZone?: string | undefined
  getNextDateFrom(start: Date, timeZone?: string): { toMillis(): number }
}

const known = new Set(['keep'])
const KEEP = 30_000
const LONGEST_DELAY = 86_400_000
const locksOf = Symbol('locks of @LeaseCron')
const moduleOf = Symbol('module of @LeaseCron')

/**
 * Lets one of all replicas run each scheduled time of a method with `@Cron` of `@nestjs/schedule`. Write it directly above
 * `@Cron`, which needs a `name`. While the method runs, it holds a lease of that name, `currentLease()`. A scheduled time
 * is skipped if the run before goes on somewhere. If the store fails, the run is skipped and the error logged by Nest.
 *
 * Throws `INVALID_ARGUMENT`.
 *
 *     @LeaseCron()
 *     @Cron('0 3 * * *', { name: 'invoices', timeZone: 'Etc/UTC' })
 */
export function LeaseCron(options: LeaseCronOptions = {}): MethodDecorator {
  checkKeys(options, known, 'LeaseCron')
  return (target, _key, descriptor) => {
    const method = methodOf(descriptor, '@LeaseCron')
    const { name, utcOffset, cronTime } = Reflect.getMetadata('SCHEDULE_CRON_OPTIONS', method) ?? {}
    if (typeof name !== 'string') throw invalid('@LeaseCron stands directly above @Cron, which needs the option name')
    if (utcOffset !== undefined) throw invalid('@LeaseCron needs timeZone in the options of @Cron, not utcOffset')
    if (typeof cronTime !== 'string') throw invalid('@LeaseCron needs a @Cron with a text such as "0 3 * * *"')
    Inject(LOCKS)(target, locksOf)
    Inject(ModuleRef)(target, moduleOf)
    const wrapped: Method = async function (...parameters) {
      const { [locksOf]: locks, [moduleOf]: module } = this as { [locksOf]?: Locks; [moduleOf]?: ModuleRef }
      if (!locks || !module) throw invalid('@LeaseCron: Nest did not make this object, or LeaseModule is missing')
      const time = lastTime(await scheduleOf(module, name), Date.now())
      const keep = options.keep ?? Math.min(KEEP, locks.store.guarantees.longestUnattended || KEEP)
      const lease = await new Ticks(locks).begin(name, `${name}:${new Date(time).toISOString()}`, keep)
      if (!lease) return undefined
      try {
        return await surround(lease, async () => method.apply(this, parameters))
      } finally {
        await lease.release()
      }
    }
    replace(descriptor, method, wrapped)
  }
}

async function scheduleOf(module: ModuleRef, name: string): Promise<Schedule> {
  const { SchedulerRegistry } = await import('@nestjs/schedule')
  return module.get(SchedulerRegistry, { strict: false }).getCronJob(name).cronTime
}

/** The last scheduled time up to now: a timer may be late. Without one in some 18 hours, as in a run by hand, now. */
function lastTime(schedule: Schedule, now: number): number {
  const after = (time: number): number => schedule.getNextDateFrom(new Date(time), schedule.timeZone).toMillis()
  for (let delay = 1_000; delay <= LONGEST_DELAY; delay *= 2) {
    let time = after(now - delay)
    if (time > now) continue
    for (let next = after(time); next > time && next <= now; next = after(next)) time = next
    return time
  }
  return now
}
