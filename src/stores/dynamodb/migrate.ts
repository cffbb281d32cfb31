import { setTimeout as sleep } from 'node:timers/promises'
import { invalid } from '../../contract/check.ts'
import { unfit } from '../wire/failure.ts'
import { checkClient, type DynamoDbClient, type DynamoDbOptions, tableOf } from './client.ts'
import { failure, nameOf } from './failure.ts'
import { EXPIRES, KEY } from './register.ts'

/** The part of the class `DynamoDB` that `migrate` needs in addition. */
export interface DynamoDbMigrationClient extends DynamoDbClient {
  createTable(input: object): Promise<unknown>
  describeTable(input: object): Promise<{
    Table?:
      | {
          readonly TableStatus?: string | undefined
          readonly KeySchema?: readonly { readonly AttributeName?: string | undefined }[] | undefined
        }
      | undefined
  }>
  describeTimeToLive(
    input: object,
  ): Promise<{ TimeToLiveDescription?: { readonly AttributeName?: string | undefined } | undefined }>
  updateTimeToLive(input: object): Promise<unknown>
}

/** Milliseconds within which a table must be created, and between two looks at it. */
const [LONGEST, PAUSE] = [60_000, 500]

/**
 * Creates the table, billed by request, if it is missing, and turns on its time to live. Rejects `ACCESS_DENIED`,
 * `NOT_MIGRATED` if the table has another key, and `STORE_UNAVAILABLE`.
 */
export async function migrate(
  client: DynamoDbMigrationClient,
  options: Pick<DynamoDbOptions, 'table'> = {},
): Promise<void> {
  const table = tableOf(options)
  checkClient(client, 'migrate(client)', 'createTable', 'describeTable', 'describeTimeToLive', 'updateTimeToLive')
  try {
    await create(client, table)
    const { TimeToLiveDescription: is } = await client.describeTimeToLive({ TableName: table })
    if (is?.AttributeName === EXPIRES) return
    if (is?.AttributeName !== undefined)
      throw invalid(`the time to live of the table ${table} is ${is.AttributeName}: give leases a table of their own`)
    const TimeToLiveSpecification = { AttributeName: EXPIRES, Enabled: true }
    await client.updateTimeToLive({ TableName: table, TimeToLiveSpecification })
  } catch (error) {
    throw failure(error, table)
  }
}

async function create(client: DynamoDbMigrationClient, table: string): Promise<void> {
  const isUnfinished = async (): Promise<boolean> => {
    const { Table: is } = await client.describeTable({ TableName: table })
    if (is?.KeySchema?.map(({ AttributeName }) => AttributeName).join() !== KEY)
      throw invalid(`the table ${table} exists, and is not one of leases: give leases a table of their own`)
    return is.TableStatus === 'CREATING'
  }
  await client
    .createTable({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: KEY, KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: KEY, AttributeType: 'S' }],
    })
    .catch((error: unknown) => {
      if (nameOf(error) !== 'ResourceInUseException') throw error // it exists
    })
  for (let waited = 0; await isUnfinished(); waited += PAUSE) {
    if (waited >= LONGEST) throw unfit(`the table ${table} is still being created after 60 s: run migrate again`)
    await sleep(PAUSE)
  }
}
