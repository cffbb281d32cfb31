import { randomId } from '../../contract/random-id.ts'
import type { Entry, Register } from '../cas/register.ts'
import type { DynamoDbClient, DynamoDbItem } from './client.ts'
import { failure, isConflict } from './failure.ts'

/** The partition key, and the attribute of the table's time to live. */
export const KEY = 'key'
export const EXPIRES = 'expires'

const [VALUE, VERSION] = ['value', 'version']

/** The room for a value: an item has at most 400 kB with its key and the names of its attributes. */
const MOST_BYTES = 400 * 1024 - 2048

/** Milliseconds by which a clock may be behind. The SDK corrects one that is more than 5 minutes off, after each answer. */
const BEHIND = 24 * 3_600_000

/** The records of a table. `close` closes the client, if it is ours. */
export function registerOf(client: DynamoDbClient, table: string, close?: () => Promise<void>): Register<string> {
  const all = { TableName: table, ConsistentRead: true }
  return {
    maxBytes: MOST_BYTES,
    ...(close && { close }),

    async read(key, abortSignal) {
      try {
        const { Item } = await client.getItem({ ...all, Key: { [KEY]: { S: key } } }, { abortSignal })
        return Item && entryOf(Item)
      } catch (error) {
        throw failure(error, table)
      }
    },

    async write(key, value, expected, abortSignal, keep) {
      const version = randomId() // never the same again, also after the item was deleted
      const until = Math.ceil((wallOf(client) + keep + BEHIND) / 1_000)
      const item = { [KEY]: { S: key }, [VALUE]: { S: value }, [VERSION]: { S: version }, [EXPIRES]: { N: `${until}` } }
      const condition =
        expected === undefined
          ? { ConditionExpression: 'attribute_not_exists(#name)', ExpressionAttributeNames: { '#name': KEY } }
          : {
              ConditionExpression: '#name = :expected',
              ExpressionAttributeNames: { '#name': VERSION },
              ExpressionAttributeValues: { ':expected': { S: expected } },
            }
      try {
        await client.putItem({ TableName: table, Item: item, ...condition }, { abortSignal })
        return version
      } catch (error) {
        if (isConflict(error)) return undefined
        throw failure(error, table)
      }
    },

    async *list(prefix, abortSignal) {
      const filter = {
        FilterExpression: 'begins_with(#name, :prefix)',
        ExpressionAttributeNames: { '#name': KEY },
        ExpressionAttributeValues: { ':prefix': { S: prefix } },
      }
      let last: DynamoDbItem | undefined
      do {
        const page: Awaited<ReturnType<DynamoDbClient['scan']>> = await client
          .scan({ ...all, ExclusiveStartKey: last, ...(prefix && filter) }, { abortSignal })
          .catch(error => {
            throw failure(error, table)
          })
        for (const item of page.Items ?? []) yield { key: item[KEY]?.S ?? '', entry: entryOf(item) }
        last = page.LastEvaluatedKey
      } while (last)
    },
  }
}

function entryOf(item: DynamoDbItem): Entry<string> {
  return { value: item[VALUE]?.S ?? '', version: item[VERSION]?.S ?? '' }
}

/** The wall clock, as the SDK corrects it by the answers of DynamoDB. Each first write to a name follows a read. */
function wallOf(client: object): number {
  const { config } = client as { config?: { systemClockOffset?: number } }
  return Date.now() + (config?.systemClockOffset ?? 0)
}
