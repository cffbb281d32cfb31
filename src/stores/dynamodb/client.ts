import { checkText, invalid, show } from '../../contract/check.ts'
import type { MinTtl } from '../url/min-ttl.ts'

/** The attributes of an item that are text. */
export type DynamoDbItem = Readonly<Record<string, { readonly S?: string | undefined }>>

/** The part of the class `DynamoDB` of `@aws-sdk/client-dynamodb` 3 that leases need. */
export interface DynamoDbClient {
  getItem(input: object, options?: { abortSignal?: AbortSignal }): Promise<{ Item?: DynamoDbItem | undefined }>
  putItem(input: object, options?: { abortSignal?: AbortSignal }): Promise<unknown>
  scan(
    input: object,
    options?: { abortSignal?: AbortSignal },
  ): Promise<{ Items?: readonly DynamoDbItem[] | undefined; LastEvaluatedKey?: DynamoDbItem | undefined }>
}

export interface DynamoDbOptions extends MinTtl {
  /** The table in which leases are stored. @default 'holdfast' */
  readonly table?: string | undefined
}

/** Throws `INVALID_ARGUMENT` for a name that no table can have. */
export function tableOf({ table = 'holdfast' }: Pick<DynamoDbOptions, 'table'>): string {
  checkText(table, 'the table')
  if (/^[\w.-]{3,255}$/.test(table)) return table
  throw invalid(`the table must be 3 to 255 of a-z, A-Z, 0-9, _, - and .: not ${show(table)}`)
}

/**
 * Throws `INVALID_ARGUMENT` for another client. `DynamoDBClient` sends commands that only its package can make, and a
 * document client converts attributes.
 */
export function checkClient(client: unknown, what: string, ...verbs: string[]): void {
  const found = Object(client) as Record<string, unknown>
  if (['send', 'getItem', 'putItem', 'scan', ...verbs].every(verb => typeof found[verb] === 'function')) return
  const given = found.constructor?.name ?? typeof client
  throw invalid(
    `${what} needs a client of the class DynamoDB of @aws-sdk/client-dynamodb 3, such as new DynamoDB({ region: 'eu-central-1' }), not ${given}: DynamoDB takes the options of DynamoDBClient`,
  )
}
