import type { Engine, EngineOptions } from '../engine.ts'

/** An engine that the lab can start. */
export interface LabEngine {
  /** What it starts, for people. */
  readonly what: string
  /** What goes wrong unless something else is said. */
  readonly faults: readonly string[]
  /** What else can go wrong, which may break what is promised, or cannot go together with the others. */
  readonly others: readonly string[]
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
    others: ['server-clock'],
    load: async () => (await import('./sqlite.ts')).startSqlite,
  },
  redis: {
    what: 'a Redis server that syncs each write',
    faults: [...USUAL, ...ONE_SERVER, 'server-forget'],
    others: CLOCKS,
    load: async () => (await import('./redis.ts')).startRedisAlone,
  },
  'redis-sentinel': {
    what: 'a Redis master, its replica and three sentinels',
    faults: [...USUAL, 'server-pause', 'failover', 'stale-failover'],
    others: ['client-clock'],
    load: async () => (await import('./redis-sentinel.ts')).startRedisSentinel,
  },
  redlock: {
    what: 'five independent Redis servers',
    faults: [...USUAL, ...ONE_SERVER, 'server-forget'],
    others: CLOCKS,
    load: async () => (await import('./redlock.ts')).startRedlock,
  },
  postgres: {
    what: 'a PostgreSQL server, leases as rows',
    faults: [...USUAL, ...ONE_SERVER],
    others: CLOCKS,
    load: async () => (await import('./postgres.ts')).startPostgresRows,
  },
  'postgres-advisory': {
    what: 'a PostgreSQL server, leases as session advisory locks',
    faults: [...USUAL, ...ONE_SERVER],
    others: CLOCKS,
    load: async () => (await import('./postgres.ts')).startPostgresAdvisory,
  },
  etcd: {
    what: 'an etcd cluster of three',
    faults: [...USUAL, ...LEADER, 'leader-cut'],
    others: ['client-clock'],
    load: async () => (await import('./etcd.ts')).startEtcd,
  },
  zookeeper: {
    what: 'a ZooKeeper ensemble of three',
    faults: [...USUAL, ...LEADER],
    others: CLOCKS,
    load: async () => (await import('./zookeeper.ts')).startZooKeeper,
  },
}
