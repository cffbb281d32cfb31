import type { Clock } from '../../contract/time.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { Leases } from './leases.ts'
import type { Requests } from './requests.ts'

/** The parts of one store that its other parts use. */
export interface Parts {
  readonly gateway: Gateway
  readonly keys: Keys
  readonly requests: Requests
  readonly leases: Leases
  /** It includes the time for which the machine sleeps, because the leases of waiters age during it. */
  readonly clock: Clock
}
