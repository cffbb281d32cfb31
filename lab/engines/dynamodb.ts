import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, migrate } from '../../src/index.ts'
import { oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startDynamoDb } from '../servers/dynamodb.ts'
import type { Endpoint } from '../servers/port.ts'
import type { Engine, EngineOptions } from './engine.ts'

/** Any credentials do for DynamoDB Local. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'lab', AWS_SECRET_ACCESS_KEY: 'lab' }

/** Amazon's DynamoDB Local, which keeps what it confirmed. */
export async function startDynamoDbLocal({ ttl }: EngineOptions): Promise<Engine> {
  Object.assign(process.env, CREDENTIALS) // clients inherit them
  const server = await startDynamoDb()
  const urlBy = ({ host, port }: Endpoint): string =>
    `dynamodb://local/holdfast?endpoint=${encodeURIComponent(`http://${host}:${port}`)}`
  await migrate(urlBy(server))
  const [data, empty] = ['shared-local-instance.db', 'empty'].map(name => join(server.folder, name)) as [string, string]
  await server.kill('SIGTERM')
  copyFileSync(data, empty)
  await server.start()
  // The first requests to Java take longer than those of a short ttl may.
  await using locks = await connect(urlBy(server), { timeout: 10_000 })
  for (let index = 0; index < 50; index += 1) await locks.using('warm-up', async () => {})
  return {
    name: 'dynamodb',
    versions: { 'dynamodb-local': 'of amplify-dynamodb-simulator' },
    // Others count the ttl from when they first saw the last renewal, and look every 0.5 s times their position.
    bound: { death: ttl + 4_000, election: ttl + 4_000 },
    endpoints: [server],
    open: ([proxy]) => ({ url: urlBy(proxy ?? server) }),
    faults: serverFaults([server], { needed: 1, wipe: () => copyFileSync(empty, data), exclusive: oneAtATime() }),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}
