import { randomBytes } from 'node:crypto'
import { CALM, clockFaults, oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startClock } from '../servers/clock.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { until } from '../servers/until.ts'
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
  const settings = { clock, password: randomBytes(16).toString('hex') }
  let server: PostgresServer = await startPostgres(settings)
  /** The one before the last switchover. */
  let old: PostgresServer | undefined
  const address = { host: server.host, port: server.port }
  const seldom = oneAtATime(CALM * ttl)
  const [row] = await server.query<{ server_version: string }>('show server_version')
  return {
    name,
    versions: { postgres: row?.server_version ?? 'unknown' },
    bound: { death: 1_000, election: 1_000 },
    endpoints: [address],
    endsWithConnection: endsWithSessions,
    lacksReaders: endsWithSessions,
    open: ([proxy]) => opening(server.urlBy(proxy?.port)),
    faults: {
      'session-end': exclusive(async ({ report }) => {
        report('the server', endsWithSessions ? { forgets: true } : {})
        await server.query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()')
      }),
      // Planned, so that nothing is lost. The old server keeps its connections until the next switchover.
      ...(!endsWithSessions && {
        switchover: exclusive(
          seldom(async ({ report, wait, random, length }) => {
            await old?.stop()
            const next = await startPostgres({ ...settings, standbyOf: server })
            old = next
            report('the server', { stopsMajority: true })
            await promote(next, server)
            ;[old, server] = [server, next]
            address.port = next.port
            await wait(Math.max(length, ttl))
            // Requests have moved by now. Nobody may depend on it.
            if (random() < 0.5) await old.pause()
          }),
        ),
      }),
      // A restart ends the sessions, and so their leases.
      ...serverFaults([server], {
        needed: 1,
        choose: async () => server,
        restartForgets: endsWithSessions,
        exclusive,
      }),
      ...clockFaults(clock ? [clock] : [], -5 * ttl, 5 * ttl),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([server.stop(), old?.stop()])
      clock?.stop()
    },
  }
}

/** Makes the primary read-only, waits until the standby has all that was acknowledged, and promotes it. */
async function promote(standby: PostgresServer, primary: PostgresServer): Promise<void> {
  await primary.query("alter system set default_transaction_read_only = 'on'")
  await primary.query('select pg_reload_conf()')
  // A session reads its settings before its next statement, and an older statement may still write.
  const writing = `select 1 from pg_stat_activity, pg_settings where pid <> pg_backend_pid() and backend_xid is not null
    or name = 'default_transaction_read_only' and setting = 'off'`
  const limit = 30_000
  await until('nobody writes', async () => (await primary.query(writing)).length === 0, { limit })
  const [row] = await primary.query<{ at: string }>('select pg_current_wal_lsn()::text as at')
  const caughtUp = `select 1 where pg_last_wal_replay_lsn() >= '${row?.at}'::pg_lsn`
  await until('the standby has caught up', async () => (await standby.query(caughtUp)).length === 1, { limit })
  await standby.query('select pg_promote()')
  const promoted = 'select 1 where not pg_is_in_recovery()'
  await until('the standby is primary', async () => (await standby.query(promoted)).length === 1, { limit })
}
