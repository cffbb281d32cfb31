import { checkKeys } from '../../contract/check.ts'
import type { Store } from '../../contract/store.ts'
import { checkClient, type DynamoDbClient, type DynamoDbOptions } from './client.ts'
import { storeOf } from './store.ts'

export type { DynamoDbClient, DynamoDbItem, DynamoDbOptions } from './client.ts'
export { type DynamoDbMigrationClient, migrate } from './migrate.ts'

const optionKeys: ReadonlySet<string> = new Set(['table', 'minTtl'])

/**
 * Leases as items of a table of DynamoDB. `client` is yours, of the class `DynamoDB` of `@aws-sdk/client-dynamodb` 3. It is
 * neither configured nor closed. `migrate` creates the table. Throws `INVALID_ARGUMENT` for any other client.
 */
export function dynamodb(client: DynamoDbClient, options: DynamoDbOptions = {}): Store {
  checkKeys(options, optionKeys, 'dynamodb')
  checkClient(client, 'dynamodb(client)')
  return storeOf(client, options)
}
