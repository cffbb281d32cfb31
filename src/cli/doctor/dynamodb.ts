import { clientAt } from '../../stores/dynamodb/open.ts'
import { EXPIRES, KEY } from '../../stores/dynamodb/register.ts'
import { type Finding, ok, problem, tlsFinding, warning } from './finding.ts'

/** Checks the table of a URL. Rejects if DynamoDB cannot be reached. `signal` ends the checks. */
export async function checkDynamoDb(url: string, signal: AbortSignal): Promise<Finding[]> {
  const { client, table, options } = clientAt(url)
  const endpoint = new URL(options.get('endpoint') ?? 'https://amazonaws.com')
  const stop = (): void => client.destroy()
  signal.addEventListener('abort', stop)
  try {
    const tls = tlsFinding(endpoint.hostname, endpoint.protocol === 'https:')
    const described = async (): Promise<Finding> =>
      schema(table, (await client.describeTable({ TableName: table })).Table)
    const found = await unlessRefused(table, described)
    if (found.level === 'problem') return [tls, found]
    const deletes = await unlessRefused(table, async () => {
      const { TimeToLiveDescription: is } = await client.describeTimeToLive({ TableName: table })
      return timeToLive(table, is?.AttributeName)
    })
    return [tls, found, deletes]
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
  }
}

type Described = Awaited<ReturnType<ReturnType<typeof clientAt>['client']['describeTable']>>['Table']

function schema(table: string, is: Described): Finding {
  const id = 'dynamodb-table'
  const key = is?.KeySchema?.map(({ AttributeName }) => AttributeName).join(', ')
  if (key === KEY) return ok(id, `the table ${table} is ${is?.TableStatus}`)
  const why = 'leases have no table to be stored'
  return problem(id, `the table ${table} has the key ${key}`, why, 'use another table, and run holdfast migrate')
}

function timeToLive(table: string, attribute: string | undefined): Finding {
  const id = 'dynamodb-time-to-live'
  if (attribute === EXPIRES) return ok(id, `the table ${table} deletes names that are long unused`)
  const what = `the time to live of the table ${table} is ${attribute ?? 'off'}`
  if (!attribute) return warning(id, what, 'names that are no longer used stay forever', 'run holdfast migrate')
  return problem(id, what, 'items of leases may be deleted while they are held', `set it to ${EXPIRES}`)
}

/** What this user may not ask is not checked. */
async function unlessRefused(table: string, find: () => Promise<Finding>): Promise<Finding> {
  try {
    return await find()
  } catch (error) {
    const name = String((error as Error).name)
    if (name.startsWith('ResourceNotFound')) {
      const why = 'leases have no table to be stored'
      return problem('dynamodb-table', `the table ${table} does not exist`, why, 'run holdfast migrate')
    }
    if (!name.startsWith('AccessDenied')) throw error
    const cure = 'allow dynamodb:DescribeTable and dynamodb:DescribeTimeToLive, or run doctor as another user'
    return warning('dynamodb-described', 'this user may not describe the table', 'it was not checked', cure)
  }
}
