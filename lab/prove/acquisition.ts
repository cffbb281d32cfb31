import type { Event } from './history.ts'

/** What has not happened, in milliseconds: later than all else. */
export const NEVER: number = Number.POSITIVE_INFINITY

/** A write to the guarded resource, by its writer. */
export interface Write {
  readonly write: number
  readonly token: bigint
  readonly at: number
  told?: 'wrote' | 'refused' | 'unsure'
  /** What the resource decided, and how many decisions on this name came before. */
  decision?: { readonly kind: 'accepted' | 'rejected'; readonly at: number; readonly order: number }
}

/** One wish to hold a name, and what became of it: moments in milliseconds, or `NEVER`. */
export class Acquisition {
  readonly op: number
  readonly client: number
  readonly name: string
  readonly asked: number
  readonly looks: { readonly at: number; readonly until: number }[] = []
  readonly writes: Write[] = []
  token = 0n
  granted: number = NEVER
  failed: number = NEVER
  lost: number = NEVER
  releasing: number = NEVER
  died: number = NEVER

  constructor({ op, client, name, at }: Event<'asked'>) {
    this.op = op
    this.client = client
    this.name = name
    this.asked = at
  }

  /** When it waited no more. */
  get settled(): number {
    return Math.min(this.granted, this.failed, this.died)
  }

  /** False of who stood still until its lease was over, and found that at its first look. */
  get held(): boolean {
    const hasActed = this.looks.length > 0 || this.writes.length > 0
    return hasActed || Math.min(this.lost, this.releasing) === NEVER
  }

  /** When it knew that it does not hold, or was no more. */
  get over(): number {
    return Math.min(this.lost, this.releasing, this.died)
  }

  /** Up to when it was told that it holds, by its last look. */
  get believedUntil(): number {
    const last = this.looks.at(-1)
    return Math.min(last ? Math.max(last.at, last.until) : this.granted, this.over)
  }

  /** Up to when it did what only a holder may, be it a write long after a look. */
  get actedUntil(): number {
    return Math.max(this.believedUntil, this.writes.at(-1)?.at ?? 0)
  }
}
