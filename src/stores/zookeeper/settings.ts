import type { Clock } from '../../contract/time.ts'
import type { Paths } from './paths.ts'
import type { Acl } from './protocol.ts'
import type { Ensemble } from './session.ts'

/** What all groups have in common. */
export interface Settings {
  readonly ensemble: Ensemble
  readonly paths: Paths
  readonly acl: Acl
  readonly clock: Clock
}
