import { BlobServiceClient, ContainerClient, ContainerSASPermissions } from '@azure/storage-blob'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Azurite, startAzurite } from '../../../../lab/servers/azurite.ts'
import { until } from '../../../../lab/servers/until.ts'
import { claimOf, failureOf, hold, signal } from '../../../../test/support.ts'
import { doctor } from '../../../cli/test/doctor.ts'
import { connect, createLocks, migrate } from '../../../index.ts'
import { failure } from '../failure.ts'
import { type AzureContainer, azureBlob } from '../index.ts'
import { forgetNames } from '../open.ts'
import { Blobs } from '../register.ts'

vi.setConfig({ testTimeout: 60_000 })

let server: Azurite
let container: ContainerClient

beforeAll(async () => {
  server = await startAzurite()
  vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', server.connectionString)
  container = new ContainerClient(server.connectionString, 'leases')
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await server.stop()
})

test('a container that is missing is named with the cure, which creates it and may run again', async () => {
  await expect(connect('azure-blob:missing')).rejects.toMatchObject({
    code: 'NOT_MIGRATED',
    message: expect.stringContaining('run holdfast migrate'),
  })
  expect(await container.exists()).toBe(false)
  for (let run = 0; run < 2; run += 1) expect(await migrate('azure-blob:leases')).toEqual(['leases'])
  await using locks = await connect('azure-blob:leases?prefix=a')
  await using lease = await locks.acquire('b c')
  expect(lease.token).toBeGreaterThan(0n)
  expect(await container.getBlobClient('ab=20c').exists()).toBe(true)
  await forgetNames('azure-blob:leases?prefix=a', ['b c', 'never used'])
  expect(await container.getBlobClient('ab=20c').exists()).toBe(false)
})

test('a process that has never seen a name takes over from a dead holder, and not before its ttl', async () => {
  await container.createIfNotExists()
  const ttl = 3_000
  await hold(azureBlob(container), claimOf('dead', { ttl }))
  const began = performance.now()
  await until('another holds', async () => (await azureBlob(container).acquire(claimOf('dead'), signal)).held)
  expect(performance.now() - began).toBeGreaterThanOrEqual(ttl - 50)
})

test('of many requests 50 are under way at once, and all are carried out', async () => {
  await container.createIfNotExists()
  let [now, most] = [0, 0]
  const counted = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    now += 1
    most = Math.max(most, now)
    return answer.finally(() => (now -= 1))
  }
  const counting: AzureContainer = {
    getBlockBlobClient(name) {
      const blob = container.getBlockBlobClient(name)
      return {
        download: (...args) => counted(blob.download(...args)),
        upload: (...args) => counted(blob.upload(...args)),
      }
    },
    listBlobsFlat: options => container.listBlobsFlat(options),
  }
  await using locks = createLocks(azureBlob(counting))
  const leases = await Promise.all(Array.from({ length: 120 }, (_, index) => locks.acquire(`many ${index}`)))
  expect(most).toBe(50)
  await Promise.all(leases.map(lease => lease.release()))
})

test('50 requests that hang hold up others for a second at most', async () => {
  await container.createIfNotExists()
  let hang = 0
  const hanging: AzureContainer = {
    getBlockBlobClient(name) {
      const blob = container.getBlockBlobClient(name)
      return {
        download: (...args) => blob.download(...args),
        upload: (body, bytes, options) => (hang-- > 0 ? new Promise(() => {}) : blob.upload(body, bytes, options)),
      }
    },
    listBlobsFlat: options => container.listBlobsFlat(options),
  }
  await using store = azureBlob(hanging)
  const claims = Array.from({ length: 50 }, (_, index) => claimOf(`hung ${index}`, { ttl: 30_000 }))
  const other = claimOf('not hung', { ttl: 30_000 })
  for (const claim of [...claims, other]) await hold(store, claim)
  hang = 50
  const renewals = claims.map(claim => store.renew(claim, signal))
  await until('they hang', () => hang === 0)
  expect(await store.renew(other, signal)).toMatchObject({ held: true })
  for (const renewed of await Promise.all(renewals)) expect(renewed).toMatchObject({ held: true }) // by their copies
})

test('a request that is given up before it was sent leaves its place to others', async () => {
  const answers: (() => void)[] = []
  const blobs = new Blobs(
    {
      getBlockBlobClient: name => ({
        download: () => expect.unreachable(),
        upload: () => new Promise(resolve => answers.push(() => resolve({ etag: name }))),
      }),
      listBlobsFlat: () => expect.unreachable(),
    },
    '',
  )
  const write = (key: string, given = signal): Promise<unknown> => blobs.write(key, '', undefined, given)
  const sent = Array.from({ length: 50 }, (_, index) => write(`sent ${index}`))
  const controller = new AbortController()
  const [waiting, givenUp] = [write('waiting'), write('given up', controller.signal)]
  controller.abort(new Error('given up'))
  await expect(givenUp).rejects.toThrow('given up')
  answers[0]?.()
  await until('the one that waits is sent', () => answers.length === 51)
  for (const answer of answers) answer()
  expect(await waiting).toBe('waiting')
  await Promise.all(sent)
})

test('a login without a permission is refused as such, and once it is granted it serves', async () => {
  await container.createIfNotExists()
  const withPermissions = async (permissions: string): Promise<ContainerClient> => {
    const expiresOn = new Date(Date.now() + 3_600_000)
    const sas = { permissions: ContainerSASPermissions.parse(permissions), expiresOn }
    return new ContainerClient(await container.generateSasUrl(sas))
  }
  await using denied = createLocks(azureBlob(await withPermissions('r')))
  await expect(denied.acquire('sas')).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/docs\/stores\/azure-blob\.md/),
  })
  await using locks = createLocks(azureBlob(await withPermissions('rcwl')))
  await using lease = await locks.acquire('sas')
  expect(lease.token).toBeGreaterThan(0n)
})

test.each([
  ['LeaseIdMissing', 412, 'INVALID_ARGUMENT', false],
  ['AuthenticationFailed', 403, 'ACCESS_DENIED', false],
  ['ServerBusy', 503, 'STORE_UNAVAILABLE', true],
  ['ContainerBeingDeleted', 409, 'STORE_UNAVAILABLE', true],
])('the answer %s is %s', (code, statusCode, is, retryable) => {
  const headers = { get: (name: string) => (name === 'retry-after' ? '2' : undefined) }
  const error = Object.assign(new Error('says\nRequestId:1'), { code, statusCode, response: { headers } })
  expect(failure(error)).toMatchObject({ code: is, retryable, retryAfter: 2_000 })
  expect(failure(error).message).toContain(`(${statusCode} ${code}: says)`)
})

test('a server that cannot be reached, and one that gave no answer, are told apart', () => {
  const failed = (code: string) => failure(Object.assign(new Error('why'), { code })).code
  expect(failed('ECONNREFUSED')).toBe('STORE_UNAVAILABLE')
  expect(failed('ECONNRESET')).toBe('OUTCOME_UNKNOWN')
})

test.each([
  'azure-blob:',
  'azure-blob:Leases',
  'azure-blob://account/leases',
  'azure-blob:a--b',
  'azure-blob:leases?x=1',
])('the URL %s is refused', url => expect(connect(url)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' }))

test('an account that is missing or cannot be read is refused, and no key is repeated', async () => {
  for (const account of ['', 'AccountKey=secret']) {
    vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', account)
    const failed = await failureOf(connect('azure-blob:leases'))
    expect(failed).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('connection string') })
    expect(String(failed)).not.toContain('secret')
  }
  vi.stubEnv('AZURE_STORAGE_CONNECTION_STRING', server.connectionString)
})

test('another client is refused, with the one that is needed', () => {
  for (const other of [{}, undefined])
    expect(() => azureBlob(other as AzureContainer)).toThrow(/ContainerClient of @azure\/storage-blob 12/)
})

test('doctor finds a container that is missing, and soft delete', async () => {
  expect((await doctor('azure-blob:missing')).levels).toMatchObject({ 'azure-blob-container': 'problem' })
  await container.createIfNotExists()
  const sound = { lease: 'ok', tls: 'ok', clock: 'ok', 'azure-blob-container': 'ok', 'azure-blob-copies': 'ok' }
  expect((await doctor('azure-blob:leases')).levels).toMatchObject(sound)
  const service = BlobServiceClient.fromConnectionString(server.connectionString)
  await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } })
  expect((await doctor('azure-blob:leases')).levels).toMatchObject({ ...sound, 'azure-blob-copies': 'warning' })
})
