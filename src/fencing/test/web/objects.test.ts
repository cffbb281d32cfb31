import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { S3 } from '@aws-sdk/client-s3'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Apache, startApache } from '../../../../lab/servers/apache.ts'
import { failureOf } from '../../../../test/support.ts'
import type { Holder } from '../../mark.ts'
import { httpObjects, type ObjectFence, type Objects, objectFence, s3Objects } from '../../objects/index.ts'
import { holder, stale } from '../support.ts'

let server: Apache
let count = 0
let url: string
const fence = objectFence(httpObjects())
beforeAll(async () => {
  server = await startApache()
})
afterAll(() => server?.stop())
beforeEach(() => {
  url = server.url(`object-${++count}`)
})

const lease = (token: number): Holder => holder('ledger', token)
async function textOf(key: string, by: ObjectFence = fence): Promise<string | undefined> {
  const object = await by.get(key)
  return object && Buffer.from(object.body).toString()
}

/** The S3 client of Amazon, at Apache: paths and conditions are the same, and nobody checks signatures there. */
function s3(endpoint = server.url('')): S3 {
  const client = new S3({
    endpoint,
    region: 'here',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    forcePathStyle: true,
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  onTestFinished(() => client.destroy())
  return client
}

describe.each<[string, () => Promise<{ objects: Objects; key: string }>]>([
  ['fetch', async () => ({ objects: httpObjects(), key: url })],
  [
    'the S3 client',
    async () => {
      await fetch(server.url('bucket'), { method: 'MKCOL' })
      return { objects: s3Objects(s3(), { bucket: 'bucket' }), key: `object-${count}` }
    },
  ],
])('over %s', (_, open) => {
  test('the newest holder puts any number of times, an older one never again', async () => {
    const { objects, key } = await open()
    const fenced = objectFence(objects)
    expect(await fenced.get(key)).toBeUndefined()
    await fenced.put(lease(7), key, 'seven')
    await fenced.put(lease(7), key, Buffer.from('seven again'))
    await expect(fenced.put(lease(6), key, 'six')).rejects.toEqual(stale(6n, 7n))
    expect(await textOf(key, fenced)).toBe('seven again')
    await fenced.put(lease(8), key, '')
    expect(await fenced.get(key)).toEqual({ body: new Uint8Array(), mark: { epoch: 0, token: 8n } })
  })

  test('a holder that has read an older object does not replace a newer one', async () => {
    const { objects, key } = await open()
    expect(await objects.write(key, Buffer.from('one'), undefined)).toBe(true)
    const old = await objects.read(key)
    expect(await objects.write(key, Buffer.from('two'), old?.tag)).toBe(true)
    expect(await objects.write(key, Buffer.from('three'), old?.tag)).toBe(false)
    expect(await objects.write(key, Buffer.from('three'), undefined)).toBe(false)
  })
})

test('after a touch no older holder puts, and the object is unchanged', async () => {
  await fence.touch(lease(7), url)
  await expect(fence.put(lease(6), url, 'six')).rejects.toEqual(stale(6n, 7n))
  expect(await fence.get(url)).toBeUndefined()
  await fence.put(lease(7), url, 'seven')
  await fence.touch(lease(8), url)
  await fence.touch(lease(8), url)
  await expect(fence.put(lease(7), url, 'seven')).rejects.toEqual(stale(7n, 8n))
  expect(await textOf(url)).toBe('seven')
})

test('a newer holder that puts the same body excludes older holders that have read it', async () => {
  await fence.put(lease(6), url, 'the same')
  const slow = objectFence({
    ...httpObjects(),
    async read(key, signal) {
      const read = await httpObjects().read(key, signal)
      await fence.put(lease(7), url, 'the same').catch(() => {})
      return read
    },
  })
  await expect(slow.put(lease(6), url, 'older')).rejects.toEqual(stale(6n, 7n))
  expect(await textOf(url)).toBe('the same')
})

test('an object that was never fenced is read unchanged, and fenced by the first put', async () => {
  await fetch(url, { method: 'PUT', body: 'plain' })
  expect(await fence.get(url)).toEqual({ body: new TextEncoder().encode('plain'), mark: undefined })
  await fence.touch(lease(7), url)
  expect(await fence.get(url)).toEqual({ body: new TextEncoder().encode('plain'), mark: { epoch: 0, token: 7n } })
  expect(await (await fetch(url)).text()).toBe('{"fencing-token":"7","epoch":0,"written":true}\nplain')
})

test('an epoch counts before the token', async () => {
  const moved = objectFence(httpObjects(), { epoch: 1 })
  await fence.put(lease(900), url, 'of the old store')
  await moved.put(lease(1), url, 'of the new store')
  await expect(fence.put(lease(901), url, 'late')).rejects.toEqual(stale(901n, 1n))
})

describe('marks', () => {
  test('can be read, also of an object that was touched and not written', async () => {
    expect(await fence.marks.get(url)).toBeUndefined()
    await fence.touch(lease(7), url)
    expect(await fence.marks.get(url)).toEqual({ epoch: 0, token: 7n })
    await fetch(url, { method: 'PUT', body: 'plain' })
    expect(await fence.marks.get(url)).toBeUndefined()
  })

  test('can be advanced to another epoch without changing the body', async () => {
    expect(await fence.marks.advance(url)).toBeUndefined()
    expect(await fence.get(url)).toBeUndefined()
    await fence.put(lease(900), url, 'of the old store')
    expect(await fence.marks.advance(url)).toBe(1)
    await expect(fence.put(lease(901), url, 'late')).rejects.toEqual(stale(901n, 0n))
    expect(await textOf(url)).toBe('of the old store')
    await objectFence(httpObjects(), { epoch: 1 }).put(lease(1), url, 'of the new store')
    expect(await fence.marks.advance(url)).toBe(2)
  })

  test('are advanced by one, even during other puts', async () => {
    await fence.put(lease(6), url, 'before')
    const slow = objectFence({
      ...httpObjects(),
      async read(key, signal) {
        const read = await httpObjects().read(key, signal)
        await fence.put(lease(7), url, 'meanwhile').catch(() => {})
        return read
      },
    })
    expect(await slow.marks.advance(url)).toBe(1)
    expect(await fence.get(url)).toEqual({
      body: new TextEncoder().encode('meanwhile'),
      mark: { epoch: 1, token: 0n },
    })
  })
})

test('any bytes are read back unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async body => {
      await fence.put(lease(7), url, body)
      expect((await fence.get(url))?.body).toEqual(new Uint8Array(body))
    }),
    { numRuns: 25 },
  )
})

const schedule = fc.array(fc.record({ token: fc.integer({ min: 1, max: 20 }), first: fc.nat(9), second: fc.nat(9) }), {
  minLength: 2,
  maxLength: 40,
})

test('with many pausing writers, readers never see an older write after a newer one', async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async writers => {
      const key = server.url(`property-${++count}`)
      let highest = 0
      const one = async ({ token, first, second }: (typeof writers)[number]): Promise<void> => {
        const objects = httpObjects()
        const slow = objectFence(
          {
            read: objects.read,
            async write(...request) {
              await sleep(second)
              return objects.write(...request)
            },
          },
          { attempts: 100 },
        )
        await sleep(first)
        const before = highest
        await slow.put(lease(token), key, String(token))
        expect(token).toBeGreaterThanOrEqual(before)
        highest = Math.max(highest, token)
        expect(Number(await textOf(key))).toBeGreaterThanOrEqual(highest)
      }
      const outcomes = await Promise.allSettled(writers.map(one))
      const reasons = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(reasons.filter(reason => reason.code !== 'STALE_TOKEN')).toEqual([])
      expect(await textOf(key)).toBe(String(Math.max(...writers.map(({ token }) => token))))
    }),
    { numRuns: 10 },
  )
}, 60_000)

test('a server that was killed and restarted keeps its marks', async () => {
  await fence.put(lease(7), url, 'seven')
  await server.kill()
  expect(await failureOf(fence.put(lease(6), url, 'six'))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  await server.restart()
  await expect(fence.put(lease(6), url, 'six')).rejects.toEqual(stale(6n, 7n))
  await fence.put(lease(8), url, 'eight')
})

describe('is reported at once', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['a path for a URL', () => fence.put(lease(1), '/object', 'x')],
    ['no body', () => fence.put(lease(1), url, undefined as never)],
    ['an empty key', () => fence.put(lease(1), '', 'x')],
    ['a token that is a number', () => fence.put({ name: 'a', token: 1 as never }, url, 'x')],
    ['a token above 2^63', () => fence.put({ name: 'a', token: 2n ** 63n }, url, 'x')],
    ['no lease', () => fence.put(undefined as never, url, 'x')],
    ['no attempts', async () => objectFence(httpObjects(), { attempts: 0 })],
    ['an option that nobody knows', async () => objectFence(httpObjects(), { linage: 1 } as object)],
    ['no bucket', async () => s3Objects(s3(), {} as never)],
  ])('%s', async (_, call) => {
    expect((await failureOf(call())).code).toBe('INVALID_ARGUMENT')
  })

  test.each(['3.1.0', '3.99.0', '3.699.0'])(
    'a client of S3 that sends no condition with a write, as %s',
    async version => {
      const client = Object.assign(s3(), { putObject: () => Promise.reject(new Error('nothing is sent')) })
      client.config.defaultUserAgentProvider = async () => [['aws-sdk-js', version]]
      await fetch(server.url('bucket'), { method: 'MKCOL' })
      const error = await failureOf(objectFence(s3Objects(client, { bucket: 'bucket' })).put(lease(1), 'old', 'x'))
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('3.700') })
    },
  )

  test('a folder that does not exist, because a retry does not help', async () => {
    const error = await failureOf(fence.put(lease(1), server.url('no/such/object'), 'x'))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(error.message).toContain('was answered 409')
  })

  test('a user who may not, on reading and on writing', async () => {
    const service = createServer((request, response) =>
      response.writeHead(request.method === 'GET' && request.url?.includes('new') ? 404 : 403).end('no'),
    )
    onTestFinished(() => void service.close())
    await once(service.listen(0, '127.0.0.1'), 'listening')
    const endpoint = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
    const denied = { code: 'ACCESS_DENIED', retryable: false }
    for (const key of ['old', 'new']) {
      expect(await failureOf(fence.put(lease(1), `${endpoint}/${key}`, 'x'))).toMatchObject(denied)
      const amazon = objectFence(s3Objects(s3(endpoint), { bucket: 'bucket' }))
      expect(await failureOf(amazon.put(lease(1), key, 'x'))).toMatchObject(denied)
    }
  })

  test('a write that is redirected, even to a page that answers 200', async () => {
    const service = createServer((request, response) => {
      if (request.url === '/login') response.writeHead(200, { etag: '"page"' }).end('who are you?')
      else if (request.method === 'GET') response.writeHead(404).end()
      else response.writeHead(303, { location: '/login' }).end()
    })
    onTestFinished(() => void service.close())
    await once(service.listen(0, '127.0.0.1'), 'listening')
    const { port } = service.address() as AddressInfo
    const error = await failureOf(fence.put(lease(1), `http://127.0.0.1:${port}/object`, 'x'))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(error.message).toContain('was answered 303')
  })

  test('an answer without an end, after 64 MB or what limit says', async () => {
    let sent = 0
    const endless = createServer((_, response) => {
      const part = Buffer.alloc(65_536)
      response.writeHead(200, { etag: '"a"' })
      const more = (): void => {
        while (!response.destroyed && response.write(part)) sent += part.length
      }
      response.on('drain', more)
      more()
    })
    onTestFinished(() => void endless.close())
    await once(endless.listen(0, '127.0.0.1'), 'listening')
    const { port } = endless.address() as AddressInfo
    const error = await failureOf(httpObjects({ maxBytes: 100_000 }).read(`http://127.0.0.1:${port}/`))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(error.message).toContain('longer than 100000 bytes')
    expect(sent).toBeLessThan(50_000_000)
  })

  test('the reason of the signal, before and during a request', async () => {
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    expect(await failureOf(fence.put(lease(1), url, 'x', { signal }))).toBe(reason)
    const controller = new AbortController()
    const hanging = objectFence(
      httpObjects({
        send: (at, request) => {
          controller.abort(reason)
          return fetch(at, request)
        },
      }),
    )
    expect(await failureOf(hanging.put(lease(1), url, 'x', { signal: controller.signal }))).toBe(reason)
  })

  test('a server that does not answer in time, with OUTCOME_UNKNOWN for a write', async () => {
    const paused = objectFence(httpObjects({ timeout: 200 }))
    await server.pause()
    try {
      expect(await failureOf(paused.put(lease(1), url, 'x'))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(await failureOf(httpObjects({ timeout: 200 }).write(url, Buffer.from('x'), undefined))).toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        retryable: true,
      })
    } finally {
      server.resume()
    }
  })
})
