import { startClock } from '../../lab/servers/clock.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import type { RedisClient } from '../../src/stores/redis/index.ts'
import { guaranteesOf } from '../../src/stores/redlock/guarantees.ts'
import { redlock } from '../../src/stores/redlock/index.ts'
import { deaths, jumps, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'
import { clients, type Owned } from './redis.ts'
import { shipped } from './shipped.ts'
import type { Stack } from './stack.ts'

/** A majority of three, and of five over the two client libraries that most people have. */
export function redlockHarnesses(): StoreHarness[] {
  return [
    redlockHarness('ioredis', 3),
    redlockHarness('node-redis', 5, 'redlock of 3 (ioredis)'),
    redlockHarness('ioredis', 5, 'redlock of 3 (ioredis)', true),
  ]
}

/** `isShipped`: with the store from the built package, whose script is minified. */
function redlockHarness(
  client: 'ioredis' | 'node-redis',
  size: number,
  repeats?: string,
  isShipped = false,
): StoreHarness {
  const create = clients[client] as (port: number) => Promise<Owned>
  const clientsAt = async (ports: readonly number[], stack: Stack): Promise<RedisClient[]> => {
    const own = await Promise.all(ports.map(async port => stack.adopt(await create(port), ({ close }) => close())))
    return own.map(owned => owned.client)
  }
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const servers = await Promise.all(Array.from({ length: size }, async () => stack.use(await startRedis({ clock }))))
    const ports = servers.map(({ port }) => port)
    const make = isShipped ? (await shipped<{ redlock: typeof redlock }>('redlock', stack)).redlock : redlock
    return { servers, clock, clients: await clientsAt(ports, stack), make }
  })
  // The servers start with the tests, and some leases are longer than any quarantine. Ten cases at once keep a small
  // machine so busy that a node may not respond for longer than the default timeout.
  const options = { trustRestarted: true, nodeTimeout: 3_000 }
  return {
    name: `redlock of ${size} (${client})`,
    store: 'redlock',
    repeats,
    open: async () => {
      const { make, clients } = await started.value
      return make(clients, options)
    },
    faults: {
      ...network(started, async (ports, stack) => (await started.value).make(await clientsAt(ports, stack), options)),
      ...deaths(started),
      ...jumps(started),
    },
    // Each request uses all servers, and ends when a majority has answered.
    scale: 4 / 3,
    lacks: {
      ...lacksBy(guaranteesOf(size, true, true)),
      queue: 'each server has its own queue, and the queues may differ',
      'one token': 'a second client may win a majority with a higher token before it has seen the first one',
    },
    end: () => started.end(),
  }
}
