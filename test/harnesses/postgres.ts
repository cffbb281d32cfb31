import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { startClock } from '../../lab/servers/clock.ts'
import { startPgBouncer } from '../../lab/servers/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../lab/servers/postgres.ts'
import { guaranteesOf as guaranteesOfAdvisory } from '../../src/stores/postgres/advisory/guarantees.ts'
import { guaranteesOf } from '../../src/stores/postgres/guarantees.ts'
import { advisory, type PostgresClient, type PostgresOptions, postgres } from '../../src/stores/postgres/index.ts'
import { deaths, jumps, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'

/** A client as users create it, and how to close it. The store opens its own connections from it. */
export interface Owned {
  readonly client: PostgresClient
  close(): Promise<unknown>
}

/** Every client library. */
export const clients: Readonly<Record<string, (url: string) => Owned>> = {
  'pg Pool'(connectionString) {
    const client = new Pool({ connectionString })
    return { client, close: () => client.end() }
  },
  'pg Client'(connectionString) {
    const client = new Client({ connectionString })
    return { client, close: async () => {} }
  },
  'postgres.js'(url) {
    const client = postgresJs(url)
    return { client, close: () => client.end({ timeout: 0 }) }
  },
}

/** One server, directly and through pgbouncer. From a Client of pg the store opens the same connections as from a Pool. */
export function postgresHarnesses(): StoreHarness[] {
  return [serverHarness('pg Pool'), serverHarness('postgres.js', 'postgres (pg Pool)'), poolerHarness()]
}

/** Transaction mode, with fewer connections than clients. Notifications bypass the pooler. */
function poolerHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const server = stack.use(await startPostgres())
    const pooler = stack.use(await startPgBouncer(server))
    const pooled = stack.adopt(new Pool({ connectionString: pooler.url }), pool => pool.end())
    const direct = stack.adopt(new Pool({ connectionString: server.url() }), pool => pool.end())
    return { servers: [pooler], store: () => postgres(pooled, { create: true, direct }) }
  })
  return {
    name: 'postgres (pgbouncer)',
    store: 'postgres',
    repeats: 'postgres (pg Pool)',
    open: async () => (await started.value).store(),
    faults: deaths(started),
    lacks: {
      ...lacksBy(guaranteesOf(true)),
      cut: 'the network is tested without a pooler',
      delay: 'the network is tested without a pooler',
      jump: 'the clock is tested without a pooler',
    },
    end: () => started.end(),
  }
}

function serverHarness(name: string, repeats?: string): StoreHarness {
  const create = clients[name] as (url: string) => Owned
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startPostgres({ clock }))
    const { client } = stack.adopt(create(server.url()), owned => owned.close())
    return { servers: [server], clock, client }
  })
  const options: PostgresOptions = { create: true }
  return {
    name: `postgres (${name})`,
    store: 'postgres',
    repeats,
    open: async () => postgres((await started.value).client, options),
    faults: {
      ...network(started, ([port], stack, { servers }) => {
        const { client } = stack.adopt(create(at(port, servers)), owned => owned.close())
        return postgres(client, options)
      }),
      ...deaths(started),
      ...jumps(started),
    },
    lacks: lacksBy(guaranteesOf(true)),
    end: () => started.end(),
  }
}

/** The connection must outlive leases of all lengths on one client, except in cases that cut it. */
export function advisoryHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startPostgres({ clock }))
    const pool = stack.adopt(new Pool({ connectionString: server.url() }), owned => owned.end())
    return { servers: [server], clock, pool }
  })
  return {
    name: 'postgres advisory',
    store: 'postgres',
    open: async () => advisory((await started.value).pool, { create: true, ttl: 2_147_483_647 }),
    faults: {
      ...network(started, ([port], stack, { servers }) => {
        const pool = stack.adopt(new Pool({ connectionString: at(port, servers) }), owned => owned.end())
        return advisory(pool, { create: true, ttl: 1_800 }) // the longest lease in those cases
      }),
      ...deaths(started),
      ...jumps(started),
    },
    lacks: {
      ...lacksBy(guaranteesOfAdvisory(0)),
      apart: 'a lock belongs to its session',
      break: 'that would end all leases of its session',
      queue: 'the server keeps none',
      watch: 'the server wakes only waiting statements, which would block all other statements of the session',
    },
    end: () => started.end(),
  }
}

/** The URL of the server, with this port. */
function at(port: number | undefined, [server]: readonly PostgresServer[]): string {
  return server?.urlBy(port) ?? ''
}
