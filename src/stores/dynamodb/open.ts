import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { keyOf } from '../cas/key.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { optionsOf } from '../url/options.ts'
import { tableOf } from './client.ts'
import { failure } from './failure.ts'
import { type DynamoDbMigrationClient, migrate } from './migrate.ts'
import { KEY } from './register.ts'
import { storeOf } from './store.ts'

const PACKAGE = '@aws-sdk/client-dynamodb'

const SHAPE = 'write dynamodb://REGION/TABLE[?endpoint=http://localhost:8000&minTtl=…]'

/** The class `DynamoDB`. */
interface OwnClient extends DynamoDbMigrationClient {
  deleteItem(input: object): Promise<unknown>
  destroy(): void
}

/**
 * Opens the store at `dynamodb://REGION/TABLE`, with the credentials that the AWS SDK finds.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openDynamoDb(url: string): Promise<Store> {
  const { client, table, options } = clientAt(url)
  return storeOf(client, { table, minTtl: minTtlIn(options) }, async () => client.destroy())
}

/** The client, the table and the options of a URL. The client does not connect yet. */
export function clientAt(url: string): { client: OwnClient; table: string; options: URLSearchParams } {
  const {
    hostname: region,
    port,
    username,
    password,
    pathname,
    search,
    hash,
  } = URL.canParse(url) ? new URL(url) : ({ pathname: '' } as URL)
  if (username || password)
    throw invalid(`the URL of the DynamoDB store has credentials: leave them to the AWS SDK; ${SHAPE}`)
  if (!region || port || hash || !/^\/[^/]+$/.test(pathname))
    throw invalid(`the URL of the DynamoDB store cannot be read: ${SHAPE}`)
  const options = optionsOf(search.slice(1), ['endpoint', 'minTtl'], 'a DynamoDB store')
  const endpoint = options.get('endpoint') ?? undefined
  if (endpoint !== undefined && !/^https?:\/\/[^/]/.test(endpoint))
    throw invalid('endpoint in the URL of the DynamoDB store is a URL, such as http://localhost:8000')
  const table = tableOf({ table: pathname.slice(1) })
  const library = load(PACKAGE) as { DynamoDB?: new (config: object) => OwnClient } | undefined
  if (!library?.DynamoDB)
    throw new LeaseError('DRIVER_MISSING', `a dynamodb: store needs a client of DynamoDB: npm i ${PACKAGE} ${WHERE}`)
  return { client: new library.DynamoDB({ region, endpoint }), table, options }
}

/** Creates the table of a URL, and resolves to its name. Rejects like `migrate`. */
export async function migrateUrl(url: string): Promise<string> {
  const { client, table } = clientAt(url)
  try {
    await migrate(client, { table })
    return table
  } finally {
    client.destroy()
  }
}

/** Deletes the items of these names from the table of a URL. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { client, table } = clientAt(url)
  try {
    for (const name of names) await client.deleteItem({ TableName: table, Key: { [KEY]: { S: keyOf(name) } } })
  } catch (error) {
    throw failure(error, table)
  } finally {
    client.destroy()
  }
}
