import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { clockFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { newFolder } from '../servers/folder.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** A file in its own folder. All clients share the clock of the machine. */
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
      async 'server-forget'({ report }) {
        report('the file', { forgets: true })
        // The rename also removes the files that SQLite keeps next to it.
        renameSync(data, join(folder, randomUUID()))
        mkdirSync(data)
      },
    },
    // A client may be paused inside a transaction.
    clientsBlockOthers: true,
    async [Symbol.asyncDispose]() {
      clock?.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
