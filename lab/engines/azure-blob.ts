import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/index.ts'
import { oneAtATime, serverFaults } from '../faults/server-faults.ts'
import { startAzurite } from '../servers/azurite.ts'
import type { Engine, EngineOptions } from './engine.ts'

const URL = 'azure-blob:leases'

/** Azurite, which keeps what it confirmed. */
export async function startAzureBlob({ ttl }: EngineOptions): Promise<Engine> {
  const server = await startAzurite()
  const envBy = (port: number): { AZURE_STORAGE_CONNECTION_STRING: string } => ({
    AZURE_STORAGE_CONNECTION_STRING: server.connectionStringAt(port),
  })
  Object.assign(process.env, envBy(server.port))
  await migrate(URL)
  const [data, empty] = ['__azurite_db_blob__.json', 'empty'].map(name => join(server.folder, name)) as [string, string]
  await server.kill()
  copyFileSync(data, empty)
  await server.start()
  return {
    name: 'azure-blob',
    versions: { azurite: await server.version() },
    // A process that did not see the last renewal counts the ttl from 3 s later at most.
    bound: { death: ttl + 4_000, election: ttl + 4_000 },
    endpoints: [server],
    open: ([proxy]) => ({ url: URL, env: envBy(proxy?.port ?? server.port) }),
    faults: serverFaults([server], { needed: 1, wipe: () => copyFileSync(empty, data), exclusive: oneAtATime() }),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}
