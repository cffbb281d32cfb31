import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine, EngineOptions } from '../engine.ts'
import { startClock } from '../servers/clock.ts'
import { newFolder } from '../servers/folder.ts'
import { clockFaults } from './server-faults.ts'

/** A file in a folder of its own. There is no server: its clock is that of the machine, the same for all clients. */
export async function startSqlite({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const folder = newFolder('sqlite')
  const clock = clocks ? startClock() : undefined
  const data = join(folder, 'data')
  mkdirSync(data)
  return {
    name: 'sqlite',
    versions: { sqlite: process.versions.sqlite ?? 'unknown' },
    bound: { death: 1_000, election: 1_000 },
    endpoints: [],
    ...(clock && { env: clock.env }),
    open: () => ({ url: `sqlite:${join(data, 'leases.db')}` }),
    faults: {
      ...clockFaults(clock ? [clock] : [], -5 * ttl, 5 * ttl),
      async 'server-forget'({ tell }) {
        tell('the file', { forgets: true })
        // Away at once, with what SQLite has beside it.
        renameSync(data, join(folder, randomUUID()))
        mkdirSync(data)
        return undefined
      },
    },
    // One that is stopped in the middle of a transaction.
    isHeldUpByClients: true,
    async [Symbol.asyncDispose]() {
      clock?.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
