import { invalid } from '../../contract/check.ts'
import { LeaseError, messageOf } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { optionsOf } from '../url/options.ts'
import { failure } from './failure.ts'
import { type AzureContainer, azureBlob } from './index.ts'

/** Names the account and its key or SAS, as for the tools of Azure. */
const VARIABLE = 'AZURE_STORAGE_CONNECTION_STRING'

interface Container extends AzureContainer {
  createIfNotExists(): Promise<unknown>
  exists(options: { abortSignal: AbortSignal }): Promise<boolean>
}

/**
 * Opens the store at `azure-blob:CONTAINER[?prefix=…]`, in the account of the environment variable.
 * @throws LeaseError INVALID_ARGUMENT, DRIVER_MISSING
 */
export async function openAzureBlob(url: string): Promise<Store> {
  const { container, options } = clientAt(url)
  return azureBlob(container, { prefix: options.get('prefix') ?? undefined, minTtl: minTtlIn(options) })
}

/** The client and the options of a URL. No message repeats it, because somebody may have written a key into it. */
export function clientAt(url: string): { container: Container; name: string; options: URLSearchParams } {
  const [, name, query = ''] = /^[^:]*:((?=[^?]{3,63}(?:\?|$))[a-z\d]+(?:-[a-z\d]+)*)(?:\?([^#]*))?$/.exec(url) ?? []
  if (name === undefined)
    throw invalid(
      'the URL of the azure-blob store cannot be read: write azure-blob:CONTAINER[?prefix=…], with 3 to 63 small letters, digits and single hyphens',
    )
  const options = optionsOf(query, ['prefix', 'minTtl'], 'an azure-blob store')
  const account = process.env[VARIABLE]
  if (!account)
    throw invalid(`an azure-blob: store needs ${VARIABLE}: set it to the connection string of the storage account`)
  const library = load('@azure/storage-blob') as
    | { ContainerClient?: new (account: string, name: string) => Container }
    | undefined
  if (!library?.ContainerClient)
    throw new LeaseError(
      'DRIVER_MISSING',
      `an azure-blob: store needs the client of Azure, version 12 or later: npm i @azure/storage-blob ${WHERE}`,
    )
  try {
    return { container: new library.ContainerClient(account, name), name, options }
  } catch (error) {
    throw invalid(`${VARIABLE} is no connection string of a storage account: ${messageOf(error)}`)
  }
}

/** Creates the container of a URL, and resolves to its name. */
export async function migrateUrl(url: string): Promise<string> {
  const { container, name } = clientAt(url)
  try {
    await container.createIfNotExists()
    return name
  } catch (error) {
    throw failure(error)
  }
}
