import { subscribe } from 'node:diagnostics_channel'
import type { LeaseEvents } from '../src/contract/lease-events.ts'

/** How Holdfast's claims fared with the nodes of a quorum, as far as events have reported since this was made. */
export class Votes {
  won = 0
  /** Of those. */
  wonAtOnce = 0
  /** Nobody had a majority. */
  split = 0

  constructor() {
    subscribe('holdfast:votes_counted', message => {
      const { outcome, rounds } = message as LeaseEvents['votes_counted']
      if (outcome === 'won') this.won += 1
      if (outcome === 'won' && rounds === 1) this.wonAtOnce += 1
      if (outcome === 'tie') this.split += 1
    })
  }
}
