import type { Store } from '../../contract/store.ts'
import { cas } from '../cas/index.ts'
import { type DynamoDbClient, type DynamoDbOptions, tableOf } from './client.ts'
import { guarantees } from './guarantees.ts'
import { registerOf } from './register.ts'

/** The store of a table. `close` closes the client with it. */
export function storeOf(client: DynamoDbClient, options: DynamoDbOptions, close?: () => Promise<void>): Store {
  const { minTtl } = options
  return cas(registerOf(client, tableOf(options), close), { kind: 'dynamodb', guarantees, minTtl })
}
