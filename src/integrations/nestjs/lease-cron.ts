import { setImmediate as turn } from 'node:timers/promises'
import { Inject } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import { invalid } from '../../contract/check.ts'
import { LONGEST_DELAY } from '../../contract/timers.ts'
import type { Locks } from '../../create-locks.ts'
import { type Method, methodOf, replace } from './method.ts'
import { LOCKS } from './token.ts'

/** Options of `once`, as `@LeaseCron` takes them. */
export interface LeaseCronOptions extends Omit<Parameters<Locks['once']>[1], 'within'> {
  /**
   * Milliseconds for which a success counts, from the start of the run, by the clock of the store: another replica whose
   * clock is behind by less does not run the method again.
   * @default half the shortest time between two scheduled ones, or as long as the store can
   */
  readonly within?: number | undefined
}

/** What is read of the jobs of `@nestjs/schedule`. */
interface Schedule {
  readonly timeZone?: string | undefined
  getNextDateFrom(start: Date, timeZone?: string): { toMillis(): number }
}

/** Scheduled times that are looked at. `@nestjs/schedule` takes some milliseconds for each, and knows eight years. */
const TICKS = 31
const FAR = 7 * 365 * 86_400_000
const locksOf = Symbol('locks of @LeaseCron')
const moduleOf = Symbol('module of @LeaseCron')

/**
 * Runs a method with `@Cron` of `@nestjs/schedule` on one of all replicas, by `locks.once`. Write it directly above `@Cron`,
 * which needs a `name`: that is the name of the lease. While the method runs, `currentLease()` is its lease. It does not run
 * while it runs elsewhere, nor within `within` of a success. If the store fails, it does not run, and Nest logs the error.
 *
 * Throws `INVALID_ARGUMENT`.
 *
 *     @LeaseCron()
 *     @Cron('0 3 * * *', { name: 'invoices', timeZone: 'Etc/UTC' })
 */
export function LeaseCron(options: LeaseCronOptions = {}): MethodDecorator {
  return (target, _key, descriptor) => {
    const method = methodOf(descriptor, '@LeaseCron')
    const { name, utcOffset, cronTime } = Reflect.getMetadata('SCHEDULE_CRON_OPTIONS', method) ?? {}
    if (typeof name !== 'string') throw invalid('@LeaseCron stands directly above @Cron, which needs the option name')
    if (utcOffset !== undefined) throw invalid('@LeaseCron needs timeZone in the options of @Cron, not utcOffset')
    if (typeof cronTime !== 'string') throw invalid('@LeaseCron needs a @Cron with a text such as "0 3 * * *"')
    Inject(LOCKS)(target, locksOf)
    Inject(ModuleRef)(target, moduleOf)
    let known: { readonly schedule: Schedule; readonly gap: number } | undefined
    const wrapped: Method = async function (...parameters) {
      const { [locksOf]: locks, [moduleOf]: module } = this as { [locksOf]?: Locks; [moduleOf]?: ModuleRef }
      if (!locks || !module) throw invalid('@LeaseCron: Nest did not make this object, or LeaseModule is missing')
      let { within } = options
      if (within === undefined) {
        const schedule = await scheduleOf(module, name) // another one after `setTime`
        if (known?.schedule !== schedule) known = { schedule, gap: await shortestGap(schedule) }
        within = Math.min(Math.floor(known.gap / 2), locks.store.guarantees.maxUnattended || LONGEST_DELAY)
      }
      const outcome = await locks.once(name, { ...options, within }, async () => method.apply(this, parameters))
      return outcome.ran ? outcome.result : undefined
    }
    replace(descriptor, method, wrapped)
  }
}

async function scheduleOf(module: ModuleRef, name: string): Promise<Schedule> {
  const { SchedulerRegistry } = await import('@nestjs/schedule')
  return module.get(SchedulerRegistry, { strict: false }).getCronJob(name).cronTime
}

/** Milliseconds between the two of the next scheduled times that are closest. */
async function shortestGap(schedule: Schedule): Promise<number> {
  const after = (time: number): number => schedule.getNextDateFrom(new Date(time), schedule.timeZone).toMillis()
  const begun = Date.now()
  let shortest = Number.POSITIVE_INFINITY
  let time = after(begun)
  for (let i = 0; i < TICKS && shortest > 1_000 && time < begun + FAR; i += 1) {
    await turn()
    const next = after(time)
    shortest = Math.min(shortest, next - time)
    time = next
  }
  return shortest
}
