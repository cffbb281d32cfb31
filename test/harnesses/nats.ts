import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { startNats } from '../../lab/servers/nats.ts'
import { migrate, nats, storeOf } from '../../src/stores/nats/index.ts'
import type { StoreHarness } from './harness.ts'
import { registerHarness } from './register.ts'
import type { Stack } from './stack.ts'

/** One server. src/stores/nats/test tests a cluster. */
export function natsHarness(): StoreHarness {
  return registerHarness({
    name: 'nats',
    store: 'nats',
    lacks: { jump: 'nothing is judged by the clock of the server' },
    async start(stack) {
      const server = stack.use(await startNats())
      const kvm = await kvmAt(server.address, stack)
      await migrate(kvm)
      return { servers: [server] as const, kvm }
    },
    connect: ({ kvm }, stack, ports) => (ports ? storeOf(() => kvmAt(`127.0.0.1:${ports[0]}`, stack), {}) : nats(kvm)),
  })
}

async function kvmAt(servers: string, stack: Stack): Promise<Kvm> {
  const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 50, pingInterval: 1_000 }
  return new Kvm(stack.adopt(await connect(options), connection => connection.close()))
}
