import type { Engine, EngineOptions } from '../engine.ts'

/** An engine that the lab can start. */
export interface LabEngine {
  /** What it starts, for people. */
  readonly what: string
  /** What goes wrong unless something else is said. */
  readonly faults: readonly string[]
  /** What else can go wrong, which may break what is promised, or cannot go together with the others. */
  readonly others: readonly string[]
  /** What breaks mutual exclusion here, which the engine does not promise to bear: the fence must. */
  readonly known: {
    readonly what: string
    readonly faults: readonly string[]
    /** What it takes to see it soon, unless something else is said: milliseconds, and how many. @default 1,000 and 3 */
    readonly ttl?: number
    readonly names?: number
  }
  load(): Promise<(options: EngineOptions) => Promise<Engine>>
}

const CLIENTS = ['client-pause', 'client-kill', 'client-block'] as const
const NETWORK = ['cut', 'cut-requests', 'cut-replies', 'delay', 'late', 'reset'] as const
const USUAL = [...CLIENTS, ...NETWORK] as const
const ONE_SERVER = ['server-pause', 'server-kill'] as const
const CLOCKS = ['client-clock', 'server-clock'] as const
const LEADER = ['server-pause', 'server-kill', 'leader-kill'] as const

/** By the word that people use for it. */
export const ENGINES: Readonly<Record<string, LabEngine>> = {
  sqlite: {
    what: 'a file',
    faults: CLIENTS,
    others: ['server-clock', 'server-forget'],
    known: {
      what: 'the file is removed while names are held: who opens a new one finds them free',
      faults: ['server-forget'],
    },
    load: async () => (await import('./sqlite.ts')).startSqlite,
  },
  redis: {
    what: 'a Redis server that syncs each write',
    faults: [...USUAL, ...ONE_SERVER, 'server-forget'],
    others: CLOCKS,
    known: {
      what: 'the wall clock of the server is set forward: a lease that is alive ends there',
      faults: ['server-clock'],
    },
    load: async () => (await import('./redis.ts')).startRedisAlone,
  },
  'redis-sentinel': {
    what: 'a Redis master, its replica and three sentinels',
    faults: [...USUAL, 'server-pause', 'failover', 'stale-failover'],
    others: ['client-clock'],
    known: {
      what: 'a replica takes over that missed the grant of a holder that is cut off: the name is free there',
      faults: ['cut', 'stale-failover'],
      ttl: 5_000,
      names: 12,
    },
    load: async () => (await import('./redis-sentinel.ts')).startRedisSentinel,
  },
  redlock: {
    what: 'five independent Redis servers',
    faults: [...USUAL, ...ONE_SERVER, 'server-forget'],
    others: [...CLOCKS, 'majority-clock'],
    known: {
      what: 'the wall clocks of a majority are set forward at once: leases that are alive end there',
      faults: ['majority-clock'],
    },
    load: async () => (await import('./redlock.ts')).startRedlock,
  },
  postgres: {
    what: 'a PostgreSQL server, leases as rows',
    faults: [...USUAL, ...ONE_SERVER, 'session-end'],
    others: CLOCKS,
    known: {
      what: 'the wall clock of the server is set forward: a lease that is alive ends there',
      faults: ['server-clock'],
    },
    load: async () => (await import('./postgres.ts')).startPostgresRows,
  },
  'postgres-advisory': {
    what: 'a PostgreSQL server, leases as session advisory locks',
    faults: [...USUAL, ...ONE_SERVER, 'session-end'],
    others: CLOCKS,
    known: {
      what: 'the server ends the session of a holder that is cut off: it does not hear of it, and its names are free',
      faults: ['cut', 'session-end'],
    },
    load: async () => (await import('./postgres.ts')).startPostgresAdvisory,
  },
  etcd: {
    what: 'an etcd cluster of three',
    faults: [...USUAL, ...LEADER, 'leader-cut'],
    others: ['client-clock', 'leader-pause'],
    known: {
      what: 'a leader stands still, is replaced, goes on and ends leases that are renewed elsewhere (before etcd 3.4.31 and 3.5.13)',
      faults: ['leader-pause'],
      ttl: 5_000,
      names: 12,
    },
    load: async () => (await import('./etcd.ts')).startEtcd,
  },
  zookeeper: {
    what: 'a ZooKeeper ensemble of three',
    faults: [...USUAL, ...LEADER],
    others: CLOCKS,
    known: {
      what: 'the monotonic clock of the leader runs ahead: the session of a holder that is cut off ends before its lease',
      faults: ['cut', 'server-clock'],
    },
    load: async () => (await import('./zookeeper.ts')).startZooKeeper,
  },
}
