import type { Machine } from '../../../test/simulation/machine.ts'
import type { Keys } from './keys.ts'

/** What was granted, with its end by the clock of the machine. */
export interface Grant {
  readonly name: string
  readonly id: string
  readonly token: number
  readonly until: number
}

/** A lock as people write it. Each call may reject: then nobody knows. */
export interface Lock {
  acquire(name: string): Promise<Grant | undefined>
  /** Its new end, or `undefined` if it is lost. */
  renew(grant: Grant): Promise<number | undefined>
  release(grant: Pick<Grant, 'name' | 'id'>): Promise<unknown>
}

/** Where a lock lives. */
export interface Home {
  readonly machine: Machine
  readonly ttl: number
  /** One that was never used. */
  newId(): string
  /** What `command` answers at the server, or at one of several. */
  ask<Answer>(command: (keys: Keys) => Answer, server?: number): Promise<Answer>
}

/** When a lease ends that was asked for at `sent`, with a margin for clocks that run at different speeds. */
export function deadline(sent: number, ttl: number): number {
  return sent + ttl * 0.99 - 2
}

/** Right as far as one server that remembers goes. */
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

  // What variants do otherwise:

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
