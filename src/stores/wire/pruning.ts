/** The number of names that are checked for idle rows each time that half as many leases were granted. */
const PRUNED = 1_000

/**
 * Deletes idle rows. One of many grants deletes some, so that rows are deleted as fast as new ones are added. Which one, and
 * where it begins, is random at first: most processes may grant little.
 */
export class Pruning {
  readonly #prune: (after: string, most: number) => Promise<unknown>
  #granted = Math.floor((Math.random() * PRUNED) / 2)
  #last = ''

  /** `prune` checks `most` names after `after`. It resolves to the last of them, or to '' at the end. */
  constructor(prune: (after: string, most: number) => Promise<unknown>) {
    this.#prune = prune
  }

  granted(name: string): void {
    this.#granted += 1
    if (this.#granted < PRUNED / 2) return
    this.#granted = 0
    const after = this.#last || (Math.random() < 0.5 ? name : '')
    this.#prune(after, PRUNED).then(
      last => {
        this.#last = String(last)
      },
      () => {}, // the next one tries again
    )
  }
}
