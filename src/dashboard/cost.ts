/** Looks may take about one part in this many of the time: 5 ms of each second. It takes the store no longer than us. */
const SHARE = 200

/** Milliseconds for each request: at most 20 a second. Reading 25 records counts as one more. */
const EACH = 50
const RECORDS = 25

/** Milliseconds: where requests are counted, a longer pause is never due to the time that a look took. */
const FAR = 1_500

/** Looks that count. The cheapest does: one may have waited for a connection or for this process. */
const KEPT = 3

interface Look {
  /** Milliseconds. */
  readonly duration: number
  /** `undefined`: unknown. */
  readonly requests: number | undefined
  readonly records: number
}

/** What looks cost the store. The time that one takes says little of a store that is far away, but its requests do. */
export class Cost {
  #looks: readonly Look[] = []

  add(look: Look): void {
    this.#looks = [look, ...this.#looks].slice(0, KEPT)
  }

  /** Milliseconds until the next look, at least. 0 until enough is known. */
  get pause(): number {
    return this.#looks.length < KEPT ? 0 : Math.min(...this.#looks.map(pauseAfter))
  }
}

function pauseAfter({ duration, requests, records }: Look): number {
  const byTime = Math.ceil(SHARE * duration)
  if (requests === undefined) return byTime
  return Math.min(byTime, Math.max(FAR, Math.ceil(EACH * (requests + records / RECORDS))))
}
