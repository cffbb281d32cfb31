import { LeaseError } from '../../../src/contract/errors.ts'
import type { Store } from '../../../src/contract/store.ts'
import type { Machine } from '../machine.ts'
import type { Random } from '../random.ts'

const TTLS = [300, 600, 1_500]

export interface Surroundings {
  readonly machine: Machine
  readonly random: Random
  readonly store: Store
  fail(what: string): void
  isOver(): boolean
}

/**
 * Asks the store itself for one name, again and again, and mostly leaves what it gets to run out: then no release and no
 * renewal mends what the votes alone did to the tokens.
 */
export async function pass({ machine, random, store, fail, isOver }: Surroundings): Promise<void> {
  while (!isOver()) {
    await machine.sleep(random.between(0, 100))
    const id = String(random.next())
    const claim = { name: 'a', id, owner: machine.name, ttl: random.pick(TTLS), note: '', queue: false }
    const controller = new AbortController()
    if (random.chance(0.2))
      machine.after(random.between(0, 100), () => controller.abort(new LeaseError('CLOSED', 'over')))
    try {
      const answer = await store.acquire(claim, controller.signal)
      if (answer.held && random.chance(0.2)) await store.release({ ...claim, token: answer.token }, never)
    } catch (error) {
      if (!LeaseError.is(error)) fail(`an unexpected error: ${String(error)}`)
    }
  }
}

const never = new AbortController().signal
