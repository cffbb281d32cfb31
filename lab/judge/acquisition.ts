import type { Event } from './history.ts'
import type { Role } from './shared.ts'

/** The time of what did not happen: later than everything. */
export const NEVER: number = Number.POSITIVE_INFINITY

/** A write to the guarded resource. */
export interface Write {
  readonly write: number
  readonly token: bigint
  readonly at: number
  /** What its writer was answered. */
  answer?: 'wrote' | 'refused' | 'unsure'
  /** What the resource decided. `order` counts the earlier decisions on this name. */
  decision?: { readonly kind: 'accepted' | 'rejected'; readonly at: number; readonly order: number }
}

/** One acquisition of a name. Times are milliseconds, or `NEVER`. */
export class Acquisition {
  readonly op: number
  readonly client: number
  readonly name: string
  readonly asked: number
  readonly checks: { readonly at: number; readonly until: number }[] = []
  readonly writes: Write[] = []
  token = 0n
  /** Of a shared name: what was granted, and the token of each slot. */
  role: Role | undefined
  slots: ReadonlyMap<number, bigint> = new Map()
  /** When the granted request left, as far as its client knows. */
  sent: number = NEVER
  granted: number = NEVER
  failed: number = NEVER
  lost: number = NEVER
  releasing: number = NEVER
  /** When it was answered that the release freed the name. */
  freed: number = NEVER
  died: number = NEVER

  constructor({ op, client, name, at }: Event<'asked'>) {
    this.op = op
    this.client = client
    this.name = name
    this.asked = at
  }

  /** When the wait ended. */
  get settled(): number {
    return Math.min(this.granted, this.failed, this.died)
  }

  /** False if the client was paused until the lease was over and noticed it at its first check. */
  get held(): boolean {
    const hasActed = this.checks.length > 0 || this.writes.length > 0
    return hasActed || Math.min(this.lost, this.releasing) === NEVER
  }

  /** When the client knew that it no longer holds, or died. */
  get over(): number {
    return Math.min(this.lost, this.releasing, this.died)
  }

  /** How long it believed to hold, by its last check. */
  get believedUntil(): number {
    const last = this.checks.at(-1)
    return Math.min(last ? Math.max(last.at, last.until) : this.granted, this.over)
  }

  /** How long it acted as holder. A write may come long after the check. */
  get actedUntil(): number {
    return Math.max(this.believedUntil, this.writes.at(-1)?.at ?? 0)
  }
}
