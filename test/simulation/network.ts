import { LeaseError } from '../../src/contract/errors.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

/** The faults of the network. */
export interface Weather {
  /** Probability that a message is lost. */
  readonly loss: number
  /** Probability that a request arrives twice. */
  readonly copies: number
  /** Probability that a message takes up to `longest` ms instead of a few. */
  readonly slow: number
  readonly longest: number
}

export const fair: Weather = { loss: 0, copies: 0, slow: 0, longest: 0 }

/** Loses, delays, copies and so reorders messages between machines and the server. */
export class Network {
  weather: Weather = fair
  /** Do messages of one machine, and those to it, arrive in the order in which they were sent? */
  isOrdered = false
  /** Machines that are cut off in both directions. */
  readonly cutUp: Set<Machine> = new Set()
  readonly cutDown: Set<Machine> = new Set()
  readonly counts: { lostRequests: number; lostReplies: number; lostWakes: number; copies: number } = {
    lostRequests: 0,
    lostReplies: 0,
    lostWakes: 0,
    copies: 0,
  }
  /** When the last of the ordered messages arrives. */
  readonly #lastUp = new Map<Machine, number>()
  readonly #lastDown = new Map<Machine, number>()
  readonly #world: World
  readonly #random: Random

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  /** The reply of `serve`, which may never arrive. `serve` runs at the server, perhaps twice or much later. */
  exchange<Answer>(machine: Machine, serve: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const arrive = async (): Promise<void> => {
        let reply: () => void
        try {
          const answer = await serve()
          reply = () => resolve(answer)
        } catch (error) {
          reply = () => reject(LeaseError.is(error) ? error : new Error('the server failed', { cause: error }))
        }
        if (this.#isLost(this.cutDown, machine)) this.counts.lostReplies += 1
        else this.#world.after(this.#delay(machine, this.#lastDown), () => machine.deliver(reply))
      }
      if (this.#random.chance(this.weather.copies)) {
        this.counts.copies += 1
        this.#world.after(this.#delay(machine, this.#lastUp) + this.#delay(machine, this.#lastUp), () => void arrive())
      }
      if (this.#isLost(this.cutUp, machine)) this.counts.lostRequests += 1
      else this.#world.after(this.#delay(machine, this.#lastUp), () => void arrive())
    })
  }

  /** A message from the server without a reply. */
  wake(machine: Machine, wake: () => void): void {
    if (this.#isLost(this.cutDown, machine)) this.counts.lostWakes += 1
    else this.#world.after(this.#delay(machine, this.#lastDown), () => machine.deliver(wake))
  }

  #isLost(cut: Set<Machine>, machine: Machine): boolean {
    return cut.has(machine) || this.#random.chance(this.weather.loss)
  }

  #delay(machine: Machine, last: Map<Machine, number>): number {
    const isSlow = this.#random.chance(this.weather.slow)
    const delay = isSlow ? this.#random.between(0, this.weather.longest) : this.#random.between(0.2, 3)
    if (!this.isOrdered) return delay
    const at = Math.max(this.#world.now + delay, last.get(machine) ?? 0)
    last.set(machine, at)
    return at - this.#world.now
  }
}
