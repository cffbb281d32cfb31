import type { Engine, EngineOptions } from './engine.ts'

/** An engine that the lab can start. */
export interface LabEngine {
  /** What it starts. */
  readonly what: string
  /** The default faults. */
  readonly faults: readonly string[]
  /** Further faults, which may break promises or conflict with the default ones. */
  readonly others: readonly string[]
  /** What breaks mutual exclusion here. The engine does not promise to tolerate it, so the fence must. */
  readonly known: {
    readonly what: string
    readonly faults: readonly string[]
    /** Defaults of `--ttl` (milliseconds) and `--names` that show it soon. @default 1,000 and 3 */
    readonly ttl?: number
    readonly names?: number
  }
  load(): Promise<(options: EngineOptions) => Promise<Engine>>
}

const CLIENTS = ['client-pause', 'client-kill', 'client-block', 'client-late'] as const
const NETWORK = ['cut', 'cut-requests', 'cut-replies', 'delay', 'late', 'reset', 'far'] as const
const DEFAULT = [...CLIENTS, ...NETWORK] as const
const ONE_SERVER = ['server-pause', 'server-kill'] as const
const CLOCKS = ['client-clock', 'server-clock'] as const
const ADDRESSES = ['first-address', 'name-server'] as const
const LEADER = ['server-pause', 'server-kill', 'leader-kill'] as const

/** Where each process observes ends by its own clock. */
const FAST_CLOCK = {
  what: 'the clock of one client runs three times as fast: for it, leases of holders that are cut off end too soon',
  faults: ['cut', 'client-speed'],
} as const

/** All engines by name. */
export const ENGINES: Readonly<Record<string, LabEngine>> = {
  sqlite: {
    what: 'a file',
    faults: CLIENTS,
    others: ['server-clock', 'server-forget'],
    known: {
      what: 'the file is removed while names are held: in a new file they are free',
      faults: ['server-forget'],
    },
    load: async () => (await import('./sqlite.ts')).startSqlite,
  },
  redis: {
    what: 'a Redis server that syncs each write',
    faults: [...DEFAULT, ...ONE_SERVER, 'server-forget', 'switchover'],
    others: CLOCKS,
    known: {
      what: 'the wall clock of the server jumps forward: live leases end there',
      faults: ['server-clock'],
    },
    load: async () => (await import('./redis.ts')).startRedisAlone,
  },
  'redis-sentinel': {
    what: 'a Redis master, its replica and three sentinels',
    faults: [...DEFAULT, 'server-pause', 'failover', 'stale-failover'],
    others: ['client-clock', 'first-address'],
    known: {
      what: 'a replica takes over that missed a grant, while the holder is cut off: the name is free there',
      faults: ['cut', 'stale-failover'],
      ttl: 5_000,
      names: 12,
    },
    load: async () => (await import('./redis-sentinel.ts')).startRedisSentinel,
  },
  redlock: {
    what: 'five independent Redis servers',
    faults: [...DEFAULT, ...ONE_SERVER, 'server-forget'],
    others: [...CLOCKS, 'majority-clock', ...ADDRESSES],
    known: {
      what: 'the wall clocks of a majority jump forward at once: live leases end there',
      faults: ['majority-clock'],
    },
    load: async () => (await import('./redlock.ts')).startRedlock,
  },
  postgres: {
    what: 'a PostgreSQL server, leases as rows',
    faults: [...DEFAULT, ...ONE_SERVER, 'session-end', 'switchover'],
    others: CLOCKS,
    known: {
      what: 'the wall clock of the server jumps forward: live leases end there',
      faults: ['server-clock'],
    },
    load: async () => (await import('./postgres.ts')).startPostgresRows,
  },
  'postgres-advisory': {
    what: 'a PostgreSQL server, leases as session advisory locks',
    faults: [...DEFAULT, ...ONE_SERVER, 'session-end'],
    others: CLOCKS,
    known: {
      what: 'the server ends the session of a holder that is cut off: its names are free and it is not notified',
      faults: ['cut', 'session-end'],
    },
    load: async () => (await import('./postgres.ts')).startPostgresAdvisory,
  },
  mysql: {
    what: 'a MariaDB server',
    faults: [...DEFAULT, ...ONE_SERVER, 'session-end'],
    others: CLOCKS,
    known: {
      what: 'the wall clock of the server jumps forward: live leases end there',
      faults: ['server-clock'],
    },
    load: async () => (await import('./mysql.ts')).startMysql,
  },
  etcd: {
    what: 'three etcd servers, election timeout 0.5 s',
    faults: [...DEFAULT, ...LEADER, 'leader-cut'],
    others: ['client-clock', 'leader-pause', ...ADDRESSES],
    known: {
      what: 'a leader is paused, replaced and resumed, and ends leases that are renewed elsewhere (before etcd 3.4.31 and 3.5.13)',
      faults: ['leader-pause'],
      ttl: 5_000,
      names: 12,
    },
    load: async () => (await import('./etcd.ts')).startEtcd,
  },
  zookeeper: {
    what: 'three ZooKeeper servers, ticks of 0.2 s, without fsync',
    faults: [...DEFAULT, ...LEADER],
    others: [...CLOCKS, ...ADDRESSES],
    known: {
      what: 'the monotonic clock of the leader jumps forward: the session of a holder that is cut off ends before its lease',
      faults: ['cut', 'server-clock'],
    },
    load: async () => (await import('./zookeeper.ts')).startZooKeeper,
  },
  dynamodb: {
    what: "Amazon's DynamoDB Local",
    faults: [...DEFAULT, ...ONE_SERVER],
    others: ['client-clock', 'server-forget'],
    known: FAST_CLOCK,
    load: async () => (await import('./dynamodb.ts')).startDynamoDbLocal,
  },
  nats: {
    what: 'three NATS servers',
    faults: [...DEFAULT, ...LEADER],
    others: ['client-clock', 'server-forget'],
    known: FAST_CLOCK,
    load: async () => (await import('./nats.ts')).startNats,
  },
  'azure-blob': {
    what: 'Azurite, the emulator of Azure Blob Storage',
    faults: [...DEFAULT, ...ONE_SERVER],
    others: ['client-clock', 'server-forget'],
    known: {
      what: 'the container is restored from an empty backup while names are held: there they are free',
      faults: ['server-forget'],
    },
    load: async () => (await import('./azure-blob.ts')).startAzureBlob,
  },
}
