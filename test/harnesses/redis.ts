import { GlideClient } from '@valkey/valkey-glide'
import { Cluster, Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey } from 'iovalkey'
import { createClient, createCluster } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { startClock } from '../../lab/servers/clock.ts'
import { startCluster } from '../../lab/servers/cluster.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { SentinelSet, startSentinel } from '../../lab/servers/sentinel.ts'
import { guaranteesOf } from '../../src/stores/redis/guarantees.ts'
import { type RedisClient, redis } from '../../src/stores/redis/index.ts'
import { deaths, jumps, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'
import { shipped } from './shipped.ts'

/** A client as users create it, with defaults, and how to close it. The store opens its own connections from it. */
export interface Owned {
  readonly client: RedisClient
  close(): Promise<void> | void
}

const host = '127.0.0.1'
const byGuarantees = lacksBy(guaranteesOf({ isCluster: false, canListen: true }))

/** Every client library, over one server. */
export const clients: Readonly<Record<string, (port: number) => Promise<Owned>>> = {
  async ioredis(port) {
    const client = new Redis({ port, lazyConnect: true })
    return { client, close: () => client.disconnect() }
  },
  async ioredis5(port) {
    const client = new Redis5({ port, lazyConnect: true })
    return { client, close: () => client.disconnect() }
  },
  async iovalkey(port) {
    const client = new Valkey({ port, lazyConnect: true })
    return { client, close: () => client.disconnect() }
  },
  'node-redis': async port => {
    const client = createClient({ socket: { host, port } })
    return { client, close: () => {} }
  },
  'node-redis4': async port => {
    const client = createClient4({ socket: { host, port } })
    return { client, close: () => {} }
  },
  async glide(port) {
    // A machine may stand still for longer than its usual 250 ms.
    const client = await GlideClient.createClient({ addresses: [{ host, port }], requestTimeout: 2_000 })
    return { client, close: () => client.close() }
  },
}

/** Over one server, with the client library that most people use. */
export function redisHarness(): StoreHarness {
  return nodeHarness('ioredis')
}

/** Over one server, with the other client libraries. */
export function redisClientHarnesses(): StoreHarness[] {
  return Object.keys(clients)
    .filter(name => name !== 'ioredis')
    .map(name => nodeHarness(name, 'redis (ioredis)', name === 'iovalkey'))
}

/** Clusters and Sentinel. */
export function redisTopologyHarnesses(): StoreHarness[] {
  return [
    clusterHarness('redis cluster (ioredis)', ports => {
      const client = new Cluster(
        ports.map(port => ({ host, port })),
        { lazyConnect: true },
      )
      return { client, close: () => client.disconnect() }
    }),
    clusterHarness(
      'redis cluster (node-redis)',
      ports => {
        const client = createCluster({ rootNodes: ports.map(port => ({ socket: { host, port } })) })
        return { client, close: () => {} }
      },
      'redis cluster (ioredis)',
    ),
    sentinelHarness(),
  ]
}

/** `isShipped`: with the store from the built package, whose script is minified. */
function nodeHarness(client: string, repeats?: string, isShipped = false): StoreHarness {
  const create = clients[client] as (port: number) => Promise<Owned>
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startRedis({ clock }))
    const { client } = stack.adopt(await create(server.port), owned => owned.close())
    const make = isShipped ? (await shipped<{ redis: typeof redis }>('redis', stack)).redis : redis
    return { servers: [server], clock, client, make }
  })
  return {
    name: `redis (${client})`,
    store: 'redis',
    repeats,
    open: async () => {
      const { make, client } = await started.value
      return make(client)
    },
    faults: {
      ...network(started, async ([port = 0], stack) => {
        const { client } = stack.adopt(await create(port), owned => owned.close())
        return (await started.value).make(client)
      }),
      ...deaths(started),
      ...jumps(started),
    },
    lacks: {
      ...byGuarantees,
      ...(client === 'glide' && {
        watch: 'a client of valkey-glide has only the subscriptions that it was created with',
      }),
    },
    end: () => started.end(),
  }
}

function clusterHarness(name: string, create: (ports: number[]) => Owned, repeats?: string): StoreHarness {
  const started = new Lazy(async stack => {
    const cluster = stack.use(await startCluster())
    const owned = stack.adopt(create(cluster.nodes.map(node => node.port)), ({ close }) => close())
    return { cluster, servers: cluster.nodes, client: owned.client }
  })
  return {
    name,
    store: 'redis',
    repeats,
    open: async () => redis((await started.value).client),
    faults: deaths(started, ({ cluster }) => cluster.agreed()),
    lacks: {
      ...byGuarantees,
      cut: 'clients connect to the addresses that nodes announce, without a proxy; cuts are tested with one server',
      delay: 'clients connect to the addresses that nodes announce, without a proxy; delays are tested with one server',
      jump: 'the clock is tested with one server',
    },
    end: () => started.end(),
  }
}

function sentinelHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const set = stack.use(await startSentinel())
    const sentinels = set.sentinels.map(({ port }) => ({ host, port }))
    const client = new Redis({ sentinels, name: SentinelSet.group, lazyConnect: true })
    stack.defer(() => client.disconnect())
    return { set, client }
  })
  const failover = 'a master that is down is replaced: src/stores/redis/test/sentinel.test.ts tests that'
  return {
    name: 'redis sentinel (ioredis)',
    store: 'redis',
    repeats: 'redis (ioredis)',
    open: async () => redis((await started.value).client),
    lacks: {
      ...byGuarantees,
      stop: failover,
      pause: failover,
      cut: failover,
      delay: failover,
      jump: 'the clock is tested with one server',
    },
    end: () => started.end(),
  }
}
