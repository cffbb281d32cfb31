import type { Machine } from '../../../test/simulation/machine.ts'
import type { World } from '../../../test/simulation/world.ts'
import type { Keys } from './keys.ts'

/** A grant, with its end by the clock of the machine. */
export interface Grant {
  readonly name: string
  readonly id: string
  readonly token: number
  readonly until: number
}

/** A typical lock. After a call that rejects, the outcome is unknown. */
export interface Lock {
  acquire(name: string): Promise<Grant | undefined>
  /** Its new end, or `undefined` if it is lost. */
  renew(grant: Grant): Promise<number | undefined>
  release(grant: Pick<Grant, 'name' | 'id'>): Promise<unknown>
  /** Of a lock with a queue: resolves when a waiter should ask again. */
  pause?(name: string): Promise<void>
  /** Of a lock with a queue: a waiter leaves it. */
  giveUp?(name: string): Promise<void>
}

/** A message of the server to a waiter. A wrong lock grants by it. */
export interface Wake {
  readonly name: string
  readonly id: string
  readonly token?: number
}

/** The environment of a lock. */
export interface Home {
  readonly client: number
  readonly machine: Machine
  readonly world: World
  readonly ttl: number
  /** The round trip to a client far away, in milliseconds; 0 for the others. */
  readonly roundTrip: number
  /** A new id. */
  newId(): string
  /** The reply of the server, or of one of several, to `command`. */
  ask<Answer>(command: (keys: Keys) => Answer, server?: number): Promise<Answer>
  /** Sends a message from the server to a client. */
  wake(client: number, wake: Wake): void
  /** Calls `woken` with each message to this client. */
  listen(woken: (wake: Wake) => void): void
}

/** When a lease ends that was requested at `sent`, with a margin for clocks that run at different speeds. */
export function deadline(sent: number, ttl: number): number {
  return sent + ttl * 0.99 - 2
}

/** Correct over one server that does not lose data. */
export class RightLock implements Lock {
  readonly home: Home

  constructor(home: Home) {
    this.home = home
  }

  async acquire(name: string): Promise<Grant | undefined> {
    const { machine, ttl } = this.home
    const sent = machine.now()
    const id = this.newId()
    try {
      const token = await this.take(name, id)
      return token === undefined ? undefined : { name, id, token, until: this.end(sent, ttl) }
    } catch (error) {
      await this.release({ name, id })
      throw error
    }
  }

  async renew({ name, id }: Grant): Promise<number | undefined> {
    const { machine, ttl } = this.home
    const sent = machine.now()
    const isHeld = await this.prolong(name, id)
    return isHeld ? this.end(sent, ttl) : undefined
  }

  release({ name, id }: Pick<Grant, 'name' | 'id'>): Promise<unknown> {
    return this.home.ask(keys => keys.compare(name, id))
  }

  // Variants override these:

  protected newId(): string {
    return this.home.newId()
  }

  protected end(sent: number, ttl: number): number {
    return deadline(sent, ttl)
  }

  protected take(name: string, id: string): Promise<number | undefined> {
    return this.home.ask(keys => (keys.setNew(name, id, this.home.ttl) ? keys.increment(`${name} token`) : undefined))
  }

  protected prolong(name: string, id: string): Promise<boolean> {
    return this.home.ask(keys => keys.compare(name, id, this.home.ttl))
  }
}
