import type { Claim } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import type { Gateway } from './gateway.ts'
import { JoinedTxns } from './joined.ts'
import type { Keys } from './keys.ts'
import type { Spare } from './spares.ts'
import { type Outcome, takeIfFree } from './txn.ts'

/** Takes names that are free: the claims that come while others are under way share a transaction. */
export class Entries {
  readonly #keys: Keys
  readonly #txns: JoinedTxns
  /** By name: two cannot be in one transaction, nor learn from its revision which of them came first. */
  readonly #underWay = new Map<string, Promise<Outcome>>()

  constructor(gateway: Gateway, keys: Keys) {
    this.#keys = keys
    this.#txns = new JoinedTxns(gateway)
  }

  /** `undefined`: nothing was asked, as another claim of this process takes the name just now. */
  async take(claim: Claim, spare: Pick<Spare, 'lease' | 'mark'>, signal: AbortSignal): Promise<Outcome | undefined> {
    const { name, queue, ttl } = claim
    for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name))
      if (queue || (await settles(other))) return undefined
    const taking = this.#txns.put(takeIfFree(this.#keys, claim, spare), requestLimit(ttl), signal)
    this.#underWay.set(name, taking)
    try {
      return await taking
    } finally {
      this.#underWay.delete(name)
    }
  }
}

function settles(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  )
}
