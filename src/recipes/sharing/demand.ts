import type { SharedKind } from '../../contract/lease-events.ts'

/** What a call asks for: `want` of these slots of a name. */
export interface Demand {
  readonly name: string
  readonly kind: SharedKind
  /** Ascending. */
  readonly slots: readonly number[]
  readonly want: number
}
