import { randomBytes } from 'node:crypto'
import { clockFaults, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { startMariaDb } from '../servers/mariadb.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** One MariaDB server. */
export async function startMysql({ ttl, clocks }: EngineOptions): Promise<Engine> {
  const exclusive = oneAtATime()
  const clock = clocks ? startClock() : undefined
  // Without a password, every user of the machine could write files as the user that started the server.
  const server = await startMariaDb({ clock, password: randomBytes(16).toString('hex') })
  const [row] = await server.query<{ version: string }>('select version() as version')
  return {
    name: 'mysql',
    versions: { mariadb: row?.version ?? 'unknown' },
    bound: { death: 1_000, election: 1_000 },
    endpoints: [server],
    open: ([proxy]) => ({ url: `${server.urlBy(proxy?.port)}?create=true` }),
    faults: {
      'session-end': exclusive(async ({ report }) => {
        report('the server', {})
        await server.query('kill user app')
      }),
      ...serverFaults([server], { needed: 1, exclusive }),
      ...clockFaults(clock ? [clock] : [], -5 * ttl, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      clock?.stop()
    },
  }
}
