import { Inject, Injectable } from '@nestjs/common'
import type { Locks } from '../../create-locks.ts'
import { LOCKS } from './token.ts'

/** A result as Terminus 11 expects it. */
export type LeaseHealthResult<Key extends string> = Record<Key, { status: 'up' } | { status: 'down'; code: string }>

/** A health indicator for Terminus 11 or newer. Inject it, and call `check` in `HealthCheckService.check`. */
export class LeaseHealth {
  readonly #locks: Locks

  constructor(locks: Locks) {
    this.#locks = locks
  }

  /**
   * Asks the store, as `locks.ping()` does. `down` if it does not answer within 2 s, or refuses. `key` is the key of the
   * result. Never rejects.
   */
  async check<const Key extends string>(key: Key): Promise<LeaseHealthResult<Key>> {
    try {
      await this.#locks.ping()
      return { [key]: { status: 'up' } } as LeaseHealthResult<Key>
    } catch (error) {
      // Not the message: the endpoint may be public, and messages name hosts and users.
      const { code, name } = error as Error & { code?: unknown }
      return { [key]: { status: 'down', code: typeof code === 'string' ? code : name } } as LeaseHealthResult<Key>
    }
  }
}

Injectable()(LeaseHealth)
Inject(LOCKS)(LeaseHealth, undefined, 0)
