/** The number of changes of each kind that are remembered. */
const KEPT = 50

/** A name that went from one owner to another between two looks, or whose holder vanished. */
export interface Change {
  readonly name: string
  readonly from: string
  /** The new owner. Empty: nobody holds the name now. */
  readonly to: string
  /** The former holder no longer renewed, so its lease ended by itself or was broken. Else it was probably released. */
  readonly isTakeover: boolean
  /** The time in milliseconds since 1970. */
  readonly at: number
}

/** Remembers what changed, and how often. */
export class Changes {
  /** The latest changes, the newest first. */
  latest: readonly Change[] = []
  total = 0
  takeovers = 0

  /** Adds a change. Frequent releases do not push out a takeover. */
  add(change: Change): void {
    this.total += 1
    if (change.isTakeover) this.takeovers += 1
    const isSame = ({ isTakeover }: Change): boolean => isTakeover === change.isTakeover
    const oldest = this.latest.filter(isSame)[KEPT - 1]
    this.latest = [change, ...this.latest.filter(each => each !== oldest)]
  }
}
