import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect as connectTo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Apache, startApache } from '../../../../lab/servers/apache.ts'
import { until } from '../../../../lab/servers/until.ts'
import { failureOf } from '../../../../test/support.ts'
import { httpObjects, objectFence } from '../../objects/index.ts'
import { holder } from '../support.ts'

let server: Apache
let url: string
const fence = objectFence(httpObjects())
beforeAll(async () => {
  server = await startApache()
})
beforeEach(() => {
  url = server.url(randomUUID())
})
afterAll(() => server?.stop())

const text = async (): Promise<string> => Buffer.from((await fence.get(url))?.body ?? '').toString()

test.each([
  ['did not arrive', false],
  ['was carried out', true],
])('a write that nobody answered is made again once, if it %s', async (_, isCarriedOut) => {
  let losses = 1
  const objects = httpObjects({
    send: async (at, request) => {
      if (request.method !== 'PUT' || losses === 0) return fetch(at, request)
      losses -= 1
      if (isCarriedOut) await (await fetch(at, request)).arrayBuffer()
      throw new Error('the other side closed')
    },
  })
  const lossy = objectFence(objects)
  await lossy.put(holder('ledger', 7), url, 'seven')
  expect(await text()).toBe('seven')
  losses = 2
  expect(await failureOf(lossy.put(holder('ledger', 8), url, 'eight'))).toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    retryable: true,
  })
  expect(losses).toBe(0)
  const { epoch = 0 } = (await fence.marks.get(url)) ?? {}
  losses = 1
  expect(await failureOf(lossy.marks.advance(url))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect((await fence.marks.get(url))?.epoch).toBe(isCarriedOut ? epoch + 1 : epoch)
})

const answered = (status: number) => async (): Promise<Response> => new Response('', { status })

test.each<[string, 'GET' | 'PUT', () => Promise<Response>]>([
  ['the next read finds no server', 'GET', () => fetch('http://127.0.0.1:9/')],
  ['the next read is refused', 'GET', answered(503)],
  ['the next write is refused', 'PUT', answered(403)],
  ['no attempt is left', 'PUT', answered(412)],
])('the outcome of a write that nobody answered stays unknown if %s', async (_, method, later) => {
  let isLost = false
  const objects = httpObjects({
    send: async (at, request) => {
      if (isLost && request.method === method) return later()
      if (isLost || request.method !== 'PUT') return fetch(at, request)
      isLost = true
      await (await fetch(at, request)).arrayBuffer()
      throw new Error('the other side closed')
    },
  })
  const error = await failureOf(objectFence(objects, { attempts: 2 }).put(holder('ledger', 7), url, 'seven'))
  expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringMatching(/the other side closed/) })
  expect(await text()).toBe('seven')
})

test.each([
  ['a newer holder has written', 'STALE_TOKEN'],
  ['the caller aborts', 'the reason'],
])('after a write that nobody answered, it is told that %s', async (_, told) => {
  const abort = new AbortController()
  const reason = Object.assign(new Error('enough'), { code: 'the reason' })
  const objects = httpObjects({
    send: async (at, request) => {
      if (request.method !== 'PUT') return fetch(at, request)
      if (told === 'STALE_TOKEN') await fence.put(holder('ledger', 8), url, 'eight')
      else abort.abort(reason)
      throw new Error('the other side closed')
    },
  })
  // Over a signal of the fence alone, so that the write is not answered rather than aborted.
  const unaware = {
    read: objects.read,
    write: (...[key, body, tag]: Parameters<typeof objects.write>) => objects.write(key, body, tag),
  }
  const put = objectFence(unaware).put(holder('ledger', 7), url, 'seven', { signal: abort.signal })
  expect(await failureOf(put)).toMatchObject({ code: told })
})

describe('a holder paused during its request', () => {
  /** A put of which only half has been sent; `finish` sends the rest, and answers the status. */
  async function half(from: Apache, key: string): Promise<() => Promise<string>> {
    const { tag } = (await httpObjects().read(key)) ?? {}
    const socket = connectTo(from.port, from.host)
    onTestFinished(() => void socket.destroy())
    const head = [`PUT ${new URL(key).pathname} HTTP/1.1`, 'Host: a', `If-Match: ${tag}`, 'Content-Length: 10']
    socket.write(`${[...head, 'Connection: close'].join('\r\n')}\r\n\r\nolder`)
    // So that the server is waiting for the rest.
    const files = (): string[] => readdirSync(join(from.folder, 'files'))
    await until('it has compared, and writes to another file', () =>
      files().some(file => file.startsWith('.davfs.tmp')),
    )
    return async () => {
      socket.write('older')
      const answer = await new Promise<Buffer>(resolve => socket.once('data', resolve))
      return answer.toString().slice(9, 12)
    }
  }

  test('overwrites a newer object if its server compares first and writes later, as Apache does', async () => {
    const many = await startApache({ workers: 'many' })
    onTestFinished(() => many.stop())
    const key = many.url('object')
    await fence.put(holder('ledger', 6), key, 'before')
    const finish = await half(many, key)
    await fence.put(holder('ledger', 7), key, 'newer')
    expect(await finish()).toBe('204')
    expect(await (await fetch(key)).text()).toBe('olderolder')
  })

  test('delays other writers if its server handles one request at a time', async () => {
    await fence.put(holder('ledger', 6), url, 'before')
    const finish = await half(server, url)
    const newer = fence.put(holder('ledger', 7), url, 'newer')
    expect(await finish()).toBe('204')
    await newer
    expect(await text()).toBe('newer')
  })
})
