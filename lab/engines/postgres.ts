import { randomBytes } from 'node:crypto'
import { clockFaults, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** One server, with leases as rows of a table. */
export async function startPostgresRows(options: EngineOptions): Promise<Engine> {
  return start('postgres', options, url => ({ url: `${url}?create=true` }))
}

/** One server, with leases as session advisory locks. */
export async function startPostgresAdvisory(options: EngineOptions): Promise<Engine> {
  return start('postgres-advisory', options, url => ({ advisory: url, ttl: options.ttl }))
}

async function start(
  name: string,
  { ttl, clocks }: EngineOptions,
  opening: (url: string) => ReturnType<Engine['open']>,
): Promise<Engine> {
  const exclusive = oneAtATime()
  const endsWithSessions = name === 'postgres-advisory'
  const clock = clocks ? startClock() : undefined
  // Without a password, every user of the machine could run programs as the user that started the server.
  const server: PostgresServer = await startPostgres({ clock, password: randomBytes(16).toString('hex') })
  const [row] = await server.query<{ server_version: string }>('show server_version')
  return {
    name,
    versions: { postgres: row?.server_version ?? 'unknown' },
    bound: { death: 1_000, election: 1_000 },
    endpoints: [server],
    endsWithConnection: endsWithSessions,
    open: ([proxy]) => opening(server.urlBy(proxy?.port)),
    faults: {
      'session-end': exclusive(async ({ report }) => {
        report('the server', endsWithSessions ? { forgets: true } : {})
        await server.query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()')
      }),
      // A restart ends the sessions, and so their leases.
      ...serverFaults([server], { needed: 1, restartForgets: endsWithSessions, exclusive }),
      ...clockFaults(clock ? [clock] : [], -5 * ttl, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      clock?.stop()
    },
  }
}
