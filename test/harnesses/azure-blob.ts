import { ContainerClient } from '@azure/storage-blob'
import { startAzurite } from '../../lab/servers/azurite.ts'
import { azureBlob } from '../../src/stores/azure-blob/index.ts'
import type { StoreHarness } from './harness.ts'
import { registerHarness } from './register.ts'

const CONTAINER = 'leases'

/** Azurite, the emulator. */
export function azureBlobHarness(): StoreHarness {
  return registerHarness({
    name: 'azure-blob',
    store: 'azure-blob',
    repeats: 'cas (table)',
    // The emulator takes up to half a second for a request among many.
    scale: 20 / 9,
    parallel: 3,
    burst: 101,
    async start(stack) {
      const server = stack.use(await startAzurite())
      await new ContainerClient(server.connectionString, CONTAINER).create()
      return { servers: [server] as const }
    },
    connect: ({ servers: [server] }, _, [port = server.port] = []) =>
      azureBlob(new ContainerClient(server.connectionStringAt(port), CONTAINER)),
    lacks: { jump: 'nobody can set the clocks of Azure' },
  })
}
