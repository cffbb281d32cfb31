import { Batch, isWanted } from '../wire/batch.ts'
import type { Connection } from './connection.ts'
import { Refused } from './failure.ts'
import { checkStep, code, type Done, multi, type Request } from './protocol.ts'

interface Check {
  readonly path: string
  readonly least: number
  readonly signal: AbortSignal
  resolve(isThere: boolean): void
  reject(reason: unknown): void
}

/** The session in which the checks run. */
export interface Checking {
  connection(least: number): Promise<Connection>
  send(connection: Connection, request: Request<Done[]>): Promise<Done[]>
}

/** The largest number of checks in one transaction. More gain little, and must stay below the server's limit of 1 MB. */
const MOST_CHECKS = 500

/** Checks whether nodes still exist. Simultaneous checks share a transaction, which also renews the session. */
export class Checks {
  readonly #session: Checking
  readonly #batch: Batch<Check>

  constructor(session: Checking) {
    this.#session = session
    this.#batch = new Batch({ limit: MOST_CHECKS, send: (checks, next) => void this.#carryOut(checks).finally(next) })
  }

  /** `least`: see `Session.connection`. */
  add(path: string, least: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => this.#batch.add({ path, least, signal, resolve, reject }))
  }

  async #carryOut(checks: Check[]): Promise<void> {
    let rest = checks
    try {
      const connection = await this.#session.connection(Math.max(...checks.map(({ least }) => least)))
      rest = checks.filter(isWanted)
      while (rest.length > 0) {
        const results = await this.#session.send(connection, multi(rest.map(({ path }) => checkStep(path))))
        const failed = results.findIndex(({ error }) => error !== 0)
        const error = results[failed]?.error
        if (error !== undefined && error !== code.noNode) throw new Refused(error)
        if (failed >= 0) rest[failed]?.resolve(false)
        else for (const { resolve } of rest) resolve(true)
        rest = failed >= 0 ? rest.filter((_, index) => index !== failed) : []
      }
    } catch (error) {
      for (const { reject } of rest) reject(error)
    }
  }
}
