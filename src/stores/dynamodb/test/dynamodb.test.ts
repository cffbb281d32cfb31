import { DynamoDB, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type DynamoDbServer, startDynamoDb } from '../../../../lab/servers/dynamodb.ts'
import { claimOf, failureOf, hold, look, signal } from '../../../../test/support.ts'
import { doctor } from '../../../cli/test/doctor.ts'
import { connect, createLocks, migrate as migrateUrl } from '../../../index.ts'
import { failure } from '../failure.ts'
import { type DynamoDbClient, dynamodb, migrate } from '../index.ts'
import { forgetNames } from '../open.ts'
import { registerOf } from '../register.ts'

const WEEK = 7 * 24 * 3_600 // seconds

let server: DynamoDbServer
let client: DynamoDB

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'local')
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'local')
  server = await startDynamoDb()
  client = new DynamoDB({ endpoint: server.endpoint, region: 'local' })
  await migrate(client)
}, 60_000)

afterAll(async () => {
  client?.destroy()
  await server?.stop()
})

afterEach(() => vi.restoreAllMocks())

const urlOf = (table: string): string => `dynamodb://local/${table}?endpoint=${encodeURIComponent(server.endpoint)}`

test('migrate creates the table with its time to live, may run again, and refuses the table of another program', async () => {
  expect(await migrateUrl(urlOf('migrated'))).toEqual(['migrated'])
  expect(await migrateUrl(urlOf('migrated'))).toEqual(['migrated'])
  const { Table } = await client.describeTable({ TableName: 'migrated' })
  expect(Table?.BillingModeSummary?.BillingMode).toBe('PAY_PER_REQUEST')
  const { TimeToLiveDescription } = await client.describeTimeToLive({ TableName: 'migrated' })
  expect(TimeToLiveDescription).toMatchObject({ AttributeName: 'expires', TimeToLiveStatus: 'ENABLED' })

  await client.createTable({
    TableName: 'theirs',
    BillingMode: 'PAY_PER_REQUEST',
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
  })
  await expect(migrateUrl(urlOf('theirs'))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(await failureOf(hold(dynamodb(client, { table: 'theirs' }), claimOf('a')))).toMatchObject({
    code: 'NOT_MIGRATED',
    message: expect.stringMatching(/table theirs .* partition key must be the string "key"/),
  })
})

test('a table that is missing is named, with the command that creates it', async () => {
  const failed = await failureOf(connect(urlOf('missing')))
  expect(failed).toMatchObject({ code: 'NOT_MIGRATED', message: expect.stringMatching(/missing.*holdfast migrate/) })
})

test('doctor finds a table that is missing, and one whose names stay forever', async () => {
  expect((await doctor(urlOf('missing'))).levels).toMatchObject({ lease: 'problem', 'dynamodb-table': 'problem' })
  const TimeToLiveSpecification = { AttributeName: 'expires', Enabled: false }
  await migrate(client, { table: 'forever' })
  const levels = { lease: 'ok', tls: 'ok', 'dynamodb-table': 'ok', 'dynamodb-time-to-live': 'ok' }
  expect((await doctor(urlOf('forever'))).levels).toMatchObject(levels)
  await client.updateTimeToLive({ TableName: 'forever', TimeToLiveSpecification })
  expect((await doctor(urlOf('forever'))).levels).toMatchObject({ ...levels, 'dynamodb-time-to-live': 'warning' })
}, 90_000)

test('a client that cannot be used is refused, with the class to use instead', () => {
  const bare = new DynamoDBClient({ region: 'local' })
  for (const other of [bare, {}, undefined])
    expect(() => dynamodb(other as unknown as DynamoDbClient)).toThrow(/class DynamoDB of @aws-sdk\/client-dynamodb 3/)
  expect(() => dynamodb(client, { table: 'a b' })).toThrow(/the table must be/)
})

test.each([
  'dynamodb://local',
  'dynamodb://local/a/b',
  'dynamodb://local:8000/leases',
  'dynamodb://key:S3cr3t@local/leases',
  'dynamodb://local/leases?endpoint=localhost',
  'dynamodb://local/leases?region=local',
])('the URL %s is refused, and no credentials are repeated', async url => {
  const failed = await failureOf(connect(url, { lazy: true }))
  expect(failed).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.not.stringContaining('S3cr3t') })
})

test('a lease costs two writes of at most 1 kB, and one read the first time', async () => {
  const counted = { getItem: 0, putItem: 0, bytes: 0 }
  const { getItem, putItem } = client
  vi.spyOn(client, 'getItem').mockImplementation((...parameters: unknown[]) => {
    counted.getItem += 1
    return Reflect.apply(getItem, client, parameters)
  })
  vi.spyOn(client, 'putItem').mockImplementation((...parameters: unknown[]) => {
    counted.putItem += 1
    counted.bytes = Math.max(counted.bytes, JSON.stringify(parameters[0]).length)
    return Reflect.apply(putItem, client, parameters)
  })
  const locks = createLocks(dynamodb(client), { owner: 'a host name of usual length and the id of a process' })
  for (let index = 0; index < 20; index += 1) await locks.using('cost', async () => {})
  expect(counted).toMatchObject({ getItem: 1, putItem: 40 })
  expect(counted.bytes).toBeLessThan(1_024)
  await locks.close()
})

test('an item stays for a week and the ttl of its holder, by the clock of DynamoDB', async () => {
  const expiresAfter = async (name: string): Promise<number> => {
    const { Item } = await client.getItem({ TableName: 'holdfast', Key: { key: { S: name } } })
    return Number(Item?.expires?.N) - Date.now() / 1_000
  }
  const ttl = 3_600_000
  await hold(dynamodb(client), claimOf('kept', { ttl }))
  expect(await expiresAfter('kept')).toBeGreaterThan(WEEK + ttl / 1_000)
  // On a machine whose clock is 30 days behind
  const { now } = Date
  vi.spyOn(Date, 'now').mockImplementation(() => now() - 30 * 24 * 3_600_000)
  const other = new DynamoDB({ endpoint: server.endpoint, region: 'local' })
  await hold(dynamodb(other), claimOf('behind', { ttl }))
  vi.restoreAllMocks()
  other.destroy()
  expect(await expiresAfter('behind')).toBeGreaterThan(WEEK + ttl / 1_000)
})

test('after an item was deleted, nobody writes over its successor, and tokens rise', async () => {
  const [one, two] = [dynamodb(client), dynamodb(client)]
  const claim = claimOf('deleted')
  const token = await hold(one, claim)
  await forgetNames(urlOf('holdfast'), ['deleted'])
  const next = await hold(two, claimOf('deleted'))
  expect(next).toBeGreaterThan(token)
  expect(await one.renew(claim, signal)).toBeUndefined()
  expect(await look(one, { name: 'deleted' })).toMatchObject([{ token: next }])
})

test('a list of more than a page has each key once, and only those of the prefix', async () => {
  await migrate(client, { table: 'pages' })
  const register = registerOf(client, 'pages')
  const keys = Array.from({ length: 8 }, (_, index) => `a${index}`)
  for (const key of [...keys, 'b']) await register.write(key, 'x'.repeat(300_000), undefined, signal, 0)
  const found: string[] = []
  for await (const { key } of register.list('a', signal)) found.push(key)
  expect(found.toSorted()).toEqual(keys)
  let all = 0
  for await (const { entry } of register.list('', signal)) all += entry?.value.length ?? 0
  expect(all).toBe(9 * 300_000)
})

test('the largest value that a register announces fits into an item', async () => {
  const register = registerOf(client, 'holdfast')
  const value = 'x'.repeat(register.maxBytes)
  expect(await register.write('k'.repeat(765), value, undefined, signal, 0)).toBeDefined()
})

test.each([
  ['AccessDeniedException', { code: 'ACCESS_DENIED', message: expect.stringMatching(/docs\/stores\/dynamodb\.md/) }],
  ['ExpiredTokenException', { code: 'ACCESS_DENIED' }],
  ['CredentialsProviderError', { code: 'ACCESS_DENIED' }],
  ['ProvisionedThroughputExceededException', { code: 'STORE_UNAVAILABLE', retryable: true, retryAfter: 500 }],
  ['ThrottlingException', { code: 'STORE_UNAVAILABLE', retryable: true, retryAfter: 500 }],
  ['InternalServerError', { code: 'OUTCOME_UNKNOWN' }],
  ['TimeoutError', { code: 'OUTCOME_UNKNOWN' }],
])('%s has a code', (name, expected) => {
  expect(failure(Object.assign(new Error('why'), { name }), 'holdfast')).toMatchObject(expected)
})

test('without credentials, or with a server that is down, connect says so', async () => {
  const down = urlOf('holdfast').replace(/%3A\d+$/, '%3A1')
  expect(await failureOf(connect(down, { timeout: 500 }))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/DynamoDB cannot be reached.*ECONNREFUSED/),
  })
  const credentials = async (): Promise<never> => {
    throw Object.assign(new Error('Could not load credentials from any providers'), {
      name: 'CredentialsProviderError',
    })
  }
  const anonymous = new DynamoDB({ endpoint: server.endpoint, region: 'local', credentials })
  expect(await failureOf(hold(dynamodb(anonymous), claimOf('a')))).toMatchObject({ code: 'ACCESS_DENIED' })
})

test('a tick that has a name of its own runs once on short-lived functions, and again only after a failure', async () => {
  let runs = 0
  /** A function that begins anew at each call, as in docs/stores/dynamodb.md. */
  const call = async (time: string, report: () => Promise<void>): Promise<void> => {
    const locks = createLocks(dynamodb(client)) // a platform that freezes functions closes nothing
    const lease = await locks.tryAcquire(`report ${time}`, { ttl: 3_600_000 })
    if (!lease) return
    try {
      runs += 1
      await report()
      lease.stopRenewing()
    } catch (error) {
      await lease.release()
      throw error
    }
  }
  await expect(call('02:00', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  await Promise.all(Array.from({ length: 5 }, () => call('02:00', async () => {})))
  await call('02:00', async () => {})
  expect(runs).toBe(2)
  await call('03:00', async () => {})
  expect(runs).toBe(3)
})
