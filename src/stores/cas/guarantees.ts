import type { Guarantees } from '../../contract/store.ts'
import type { Register } from './register.ts'
import { POLL } from './waiting.ts'

/** The guarantees of a register. `given`: what its author says about the system. */
export function guaranteesOf(
  { knowsAge = false, watch }: Pick<Register<unknown>, 'knowsAge' | 'watch'>,
  given: Partial<Guarantees> = {},
): Guarantees {
  const isPushed = watch !== undefined
  const poll = isPushed ? 0 : POLL
  const limits = [
    'A renewal that is written after its lease has ended revives the lease unless its name was written since. It takes the name from nobody.',
    'Each grant, renewal and release rewrites the record of its name: clients of a hot name write in turn, and conflicts are retried.',
    ...(knowsAge
      ? []
      : [
          'A process counts the ttl of a holder that has died from when it first saw the last renewal. One that ends sooner never takes over, so `once`, `@LeaseCron` and `--skip-if-ran-since` are refused.',
        ]),
  ]
  return {
    scope: 'network',
    exclusion: `while the system keeps what it confirmed${knowsAge ? ', the clock by which it tells the age of records is not set forward,' : ''} and the clocks of machines run equally fast; fencing decides otherwise`,
    token:
      'a counter in the record of the name, never below the wall clock of the process in microseconds; it falls only if the record is lost and that clock is then behind the last grant',
    order: 'first come, first served',
    sharing: 'slots',
    waiting: isPushed ? 'pushed' : 'polled',
    minTtl: 300,
    ...(!knowsAge && { maxUnattended: 0 }),
    takeover: { least: 0, extra: knowsAge ? poll : 2 * poll },
    clock: knowsAge
      ? 'the monotonic clock of each process, and the age of the record by the clock of the server; none is compared with another'
      : 'the monotonic clock of each process: none is compared with another, and all must run equally fast',
    durability: 'that of the system: what it confirmed',
    ...given,
    limits: [...limits, ...(given.limits ?? [])],
  }
}
