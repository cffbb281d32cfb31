import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { advisory, type PostgresClient, type PostgresOptions, postgres } from '../../src/stores/postgres/index.ts'
import { startClock } from '../servers/clock.ts'
import { startPgBouncer } from '../servers/pgbouncer.ts'
import { startPostgres } from '../servers/postgres.ts'
import { startProxy } from '../servers/proxy.ts'
import type { StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'

/** A client as a user has it, and how to close it. The store opens connections of its own from it. */
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

/** Both client libraries over one server, and through pgbouncer. */
export function postgresHarnesses(): StoreHarness[] {
  const tested = Object.entries(clients).filter(([name]) => name !== 'pg Client') // which opens what a Pool opens
  return [...tested.map(([name, create]) => serverHarness(name, create)), poolerHarness(), advisoryHarness()]
}

/** In transaction mode, with fewer connections than there are clients; who wakes the waiters is heard past it. */
function poolerHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const server = stack.use(await startPostgres())
    const pooler = stack.use(await startPgBouncer(server))
    const pooled = stack.adopt(new Pool({ connectionString: pooler.url }), pool => pool.end())
    const direct = stack.adopt(new Pool({ connectionString: server.url() }), pool => pool.end())
    return { pooler, store: () => postgres(pooled, { create: true, direct }) }
  })
  return {
    name: 'postgres (pgbouncer)',
    store: 'postgres',
    open: async () => (await started.value).store(),
    faults: {
      async stop() {
        const { pooler } = await started.value
        await pooler.kill()
        return () => pooler.start()
      },
      async pause() {
        const { pooler } = await started.value
        await pooler.pause()
        return async () => pooler.resume()
      },
    },
    lacks: {
      cut: 'the network is tested without a pooler',
      jump: 'the clock is tested without a pooler',
    },
    end: () => started.end(),
  }
}

function serverHarness(name: string, create: (url: string) => Owned): StoreHarness {
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startPostgres({ clock }))
    const { client } = stack.adopt(create(server.url()), owned => owned.close())
    return { server, clock, client }
  })
  const options: PostgresOptions = { create: true }
  return {
    name: `postgres (${name})`,
    store: 'postgres',
    open: async () => postgres((await started.value).client, options),
    faults: {
      async severable() {
        const { server } = await started.value
        const proxy = started.stack.use(await startProxy(server))
        const url = server.url().replace(`:${server.port}/`, `:${proxy.port}/`)
        const { client } = started.stack.adopt(create(url), owned => owned.close())
        return {
          store: postgres(client, options),
          async cut() {
            proxy.up.drop()
            proxy.down.drop()
            return async () => {
              proxy.up.pass()
              proxy.down.pass()
            }
          },
        }
      },
      async stop() {
        const { server } = await started.value
        await server.kill()
        return () => server.start()
      },
      async pause() {
        const { server } = await started.value
        await server.pause()
        return async () => server.resume()
      },
      async jump(ms) {
        const { clock } = await started.value
        clock.jumpWall(ms)
      },
    },
    end: () => started.end(),
  }
}

/** The suite has leases of all lengths on one client: so the connection outlives them, but where it is cut off. */
function advisoryHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startPostgres({ clock }))
    const pool = stack.adopt(new Pool({ connectionString: server.url() }), owned => owned.end())
    return { server, clock, pool }
  })
  return {
    name: 'postgres advisory',
    store: 'postgres',
    open: async () => advisory((await started.value).pool, { create: true, ttl: 2_147_483_647 }),
    faults: {
      async severable() {
        const { server } = await started.value
        const proxy = started.stack.use(await startProxy(server))
        const connectionString = server.url().replace(`:${server.port}/`, `:${proxy.port}/`)
        const pool = started.stack.adopt(new Pool({ connectionString }), owned => owned.end())
        return {
          store: advisory(pool, { create: true, ttl: 1_200 }),
          async cut() {
            proxy.up.drop()
            proxy.down.drop()
            return async () => {
              proxy.up.pass()
              proxy.down.pass()
            }
          },
        }
      },
      async stop() {
        const { server } = await started.value
        await server.kill()
        return () => server.start()
      },
      async pause() {
        const { server } = await started.value
        await server.pause()
        return async () => server.resume()
      },
      async jump(ms) {
        const { clock } = await started.value
        clock.jumpWall(ms)
      },
    },
    lacks: {
      apart: 'a lock belongs to the session that has it',
      break: 'that would end all leases of its session',
      line: 'the server keeps none',
      watch: 'the server wakes only those who wait in a statement, which would hold up all others of the session',
    },
    end: () => started.end(),
  }
}
