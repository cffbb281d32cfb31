import { DynamoDB } from '@aws-sdk/client-dynamodb'
import { startDynamoDb } from '../../lab/servers/dynamodb.ts'
import { dynamodb, migrate } from '../../src/stores/dynamodb/index.ts'
import type { StoreHarness } from './harness.ts'
import { registerHarness } from './register.ts'

/** Amazon's DynamoDB Local. */
export function dynamodbHarness(): StoreHarness {
  return registerHarness({
    name: 'dynamodb',
    store: 'dynamodb',
    repeats: 'cas (table)',
    // The emulator takes up to a second for a request among many.
    scale: 4,
    parallel: 3,
    burst: 101,
    lacks: { jump: 'the clock of the server decides nothing' },
    async start(stack) {
      const server = stack.use(await startDynamoDb())
      const client = stack.adopt(clientOf(server.endpoint), async owned => owned.destroy())
      await migrate(client)
      return { servers: [server] as const, client }
    },
    connect({ client }, stack, ports) {
      if (!ports) return dynamodb(client)
      return dynamodb(stack.adopt(clientOf(`http://127.0.0.1:${ports[0]}`), async owned => owned.destroy()))
    },
  })
}

function clientOf(endpoint: string): DynamoDB {
  return new DynamoDB({
    endpoint,
    region: 'local',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  })
}
