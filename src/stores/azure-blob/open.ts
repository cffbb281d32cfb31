import { invalid } from '../../contract/check.ts'
import { LeaseError, messageOf } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { keyOf } from '../cas/key.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { optionsOf } from '../url/options.ts'
import { failure, isMissing } from './failure.ts'
import { azureBlob } from './index.ts'
import { type AzureContainer, PREFIX } from './register.ts'

/** Names the account and its key or SAS, as for the tools of Azure. */
const VARIABLE = 'AZURE_STORAGE_CONNECTION_STRING'

interface Container extends AzureContainer {
  readonly url: string
  createIfNotExists(): Promise<unknown>
  getProperties(conditions: object, options: { abortSignal: AbortSignal }): Promise<{ date?: Date }>
  deleteBlob(name: string): Promise<unknown>
}

interface Service {
  getProperties(options: { abortSignal: AbortSignal }): Promise<{ deleteRetentionPolicy?: { enabled?: boolean } }>
}

interface Library {
  readonly ContainerClient?: new (account: string, name: string) => Container
  readonly BlobServiceClient: { fromConnectionString(account: string): Service }
}

/** What a URL opens. */
interface Opened {
  readonly container: Container
  readonly service: Service
  readonly name: string
  readonly prefix: string
  readonly minTtl: number | undefined
}

/**
 * Opens the store at `azure-blob:CONTAINER[?prefix=…]`, in the account of the environment variable.
 * @throws LeaseError INVALID_ARGUMENT, DRIVER_MISSING
 */
export async function openAzureBlob(url: string): Promise<Store> {
  const { container, prefix, minTtl } = clientAt(url)
  return azureBlob(container, { prefix, minTtl })
}

/** The clients and the options of a URL. No message repeats it, because somebody may have written a key into it. */
export function clientAt(url: string): Opened {
  const [, name, query = ''] = /^[^:]*:((?=[^?]{3,63}(?:\?|$))[a-z\d]+(?:-[a-z\d]+)*)(?:\?([^#]*))?$/.exec(url) ?? []
  if (name === undefined)
    throw invalid(
      'the URL of the azure-blob store cannot be read: write azure-blob:CONTAINER[?prefix=…], with 3 to 63 small letters, digits and single hyphens',
    )
  const options = optionsOf(query, ['prefix', 'minTtl'], 'an azure-blob store')
  const account = process.env[VARIABLE]
  if (!account)
    throw invalid(`an azure-blob: store needs ${VARIABLE}: set it to the connection string of the storage account`)
  const library = load('@azure/storage-blob') as Library | undefined
  if (!library?.ContainerClient)
    throw new LeaseError(
      'DRIVER_MISSING',
      `an azure-blob: store needs the client of Azure, version 12 or later: npm i @azure/storage-blob ${WHERE}`,
    )
  try {
    const container = new library.ContainerClient(account, name)
    const service = library.BlobServiceClient.fromConnectionString(account)
    return { container, service, name, prefix: options.get('prefix') ?? PREFIX, minTtl: minTtlIn(options) }
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

/** Deletes the blobs of these names from the container of a URL. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { container, prefix } = clientAt(url)
  for (const name of names)
    await container.deleteBlob(prefix + keyOf(name)).catch(error => {
      if (!isMissing(error)) throw failure(error)
    })
}
