import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { sqlRegister, TABLE } from '../../examples/register.ts'
import { startClock } from '../../lab/servers/clock.ts'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { cas, type Register } from '../../src/stores/cas/index.ts'
import type { StoreHarness } from './harness.ts'
import { registerHarness } from './register.ts'

/** A table of PostgreSQL, as the guide writes it. */
export function sqlRegisterHarness(): StoreHarness {
  return registerHarness({
    name: 'cas (table)',
    store: 'cas',
    async start(stack) {
      const clock = stack.use(startClock())
      const server = stack.use(await startPostgres({ clock, config: { max_connections: 400 } }))
      await server.query(TABLE)
      return { servers: [server] as const, clock }
    },
    // Over one pool, the requests of all cases that run would wait for each other.
    connect({ servers: [server] }, _, ports) {
      const pool = poolAt(server.urlBy(ports?.[0]))
      return cas({ ...sqlRegister(pool), close: () => pool.end() })
    },
  })
}

/** A connection that is cut off gives no answer, so requests need a limit. */
function poolAt(connectionString: string): Pool {
  const pool = new Pool({
    connectionString,
    max: 4,
    allowExitOnIdle: true,
    query_timeout: 5_000,
    connectionTimeoutMillis: 10_000,
  })
  pool.on('error', () => {}) // its server was killed
  return pool
}

/** In this process: requests take a random time each way. Nobody knows the age of a record. */
export function memoryRegisterHarness(): StoreHarness {
  const records = new Map<string, { value: string; version: number }>()
  const noServer = 'there is no server'
  return {
    name: 'cas (memory)',
    store: 'cas',
    open: async () => cas(memoryRegister(records)),
    lacks: { cut: noServer, delay: noServer, stop: noServer, pause: noServer, jump: noServer },
    end: async () => {},
  }
}

/** A register over a map. */
function memoryRegister(records: Map<string, { value: string; version: number }>): Register<number> {
  const way = (): Promise<void> => sleep(Math.random() * 3)
  return {
    maxBytes: 400_000,
    async read(key) {
      await way()
      const found = records.get(key)
      await way()
      return found
    },
    async write(key, value, expected) {
      await way()
      const isExpected = records.get(key)?.version === expected
      const version = performance.now() + Math.random()
      if (isExpected) records.set(key, { value, version })
      await way()
      return isExpected ? version : undefined
    },
    async *list(prefix) {
      for (const key of [...records.keys()]) if (key.startsWith(prefix)) yield { key }
    },
  }
}
