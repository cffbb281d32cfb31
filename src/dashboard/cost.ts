/** Looks may take 1/200 of the time: 5 ms of each second. The store needs no longer for a look than this process. */
const SHARE = 200

/** Milliseconds of pause for each request: at most 20 requests a second. Reading 25 records counts as one more. */
const EACH = 50
const RECORDS = 25

/** The longest pause, in milliseconds, for the time that a look took, if its requests are counted. */
const FAR = 1_500

/** The number of looks that are remembered. The cheapest counts, because a look may wait for other reasons. */
const KEPT = 3

interface Look {
  /** The duration of the look in milliseconds. */
  readonly duration: number
  /** The number of requests. `undefined`: unknown. */
  readonly requests: number | undefined
  readonly records: number
}

/** The cost of looks for the store. For a store that is far away, the time says little, but the requests do. */
export class Cost {
  #looks: readonly Look[] = []

  add(look: Look): void {
    this.#looks = [look, ...this.#looks].slice(0, KEPT)
  }

  /** The least time until the next look, in milliseconds. 0 until enough is known. */
  get pause(): number {
    return this.#looks.length < KEPT ? 0 : Math.min(...this.#looks.map(pauseAfter))
  }
}

function pauseAfter({ duration, requests, records }: Look): number {
  const byTime = Math.ceil(SHARE * duration)
  if (requests === undefined) return byTime
  return Math.min(byTime, Math.max(FAR, Math.ceil(EACH * (requests + records / RECORDS))))
}
