import { checkKeys, invalid } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { cas } from '../cas/index.ts'
import type { MinTtl } from '../url/min-ttl.ts'
import { checkPrefix } from '../url/options.ts'
import { guarantees } from './guarantees.ts'
import { type AzureContainer, Blobs, PREFIX } from './register.ts'

export type { AzureContainer } from './register.ts'

export interface AzureBlobOptions extends MinTtl {
  /** Before the names of blobs. Leases of one container and prefix exclude each other. @default 'holdfast/' */
  readonly prefix?: string | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['prefix', 'minTtl'])

/**
 * Leases as blobs of Azure Blob Storage, one for each name. `container` is a `ContainerClient` of `@azure/storage-blob` 12,
 * without a `secondaryHost`. It must exist, and is neither configured nor closed. Throws `INVALID_ARGUMENT` for any other
 * client.
 */
export function azureBlob(container: AzureContainer, options: AzureBlobOptions = {}): Store {
  for (const verb of ['getBlockBlobClient', 'listBlobsFlat'] as const)
    if (typeof container?.[verb] !== 'function')
      throw invalid('azureBlob(container) needs a ContainerClient of @azure/storage-blob 12 or later')
  checkKeys(options, optionKeys, 'azureBlob')
  const { prefix = PREFIX, minTtl } = options
  checkPrefix(prefix)
  return cas(new Blobs(container, prefix), { kind: 'azure-blob', guarantees, minTtl })
}
