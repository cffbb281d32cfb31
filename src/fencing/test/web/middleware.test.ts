import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../../../../test/support.ts'
import {
  expressFence,
  fastifyFence,
  fenceHeaders,
  fenceOf,
  honoFence,
  type Marks,
  memoryMarks,
  nodeFence,
  throwIfStale,
} from '../../http/index.ts'
import { services } from './services.ts'

interface Answer {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly body: string
}

/** A PUT with headers as they are given, also twice the same, which `fetch` would join. */
async function put(url: string, headers: Record<string, string | string[]>, body: string): Promise<Answer> {
  const asked = request(url, { method: 'PUT', headers: { 'Content-Type': 'text/plain', ...headers } })
  const [response] = (await once(asked.end(body), 'response')) as [IncomingMessage]
  const { statusCode: status, headers: answered } = response
  return { status, type: answered['content-type'], body: await text(response) }
}

describe.each(Object.entries(services))('behind %s', (kind, start) => {
  const open = async (
    marks: Marks | null = memoryMarks(),
  ): Promise<(path: string, init: RequestInit) => Promise<Response>> => {
    const url = await start(marks, [])
    return (path, init) => fetch(url + path, init)
  }
  const show = (token: bigint, name = 'things/one'): RequestInit => ({
    method: 'PUT',
    headers: fenceHeaders({ name, token }),
  })

  test('the handler gets what the request presented', async () => {
    const ask = await open()
    const response = await ask('/things/one', show(7n))
    expect([response.status, await response.text()]).toEqual([200, '7'])
  })

  test('a stale token is answered 412, with both tokens, which is STALE_TOKEN to the client', async () => {
    const ask = await open()
    await ask('/things/one', show(7n))
    const response = await ask('/things/one', show(6n))
    expect(response.status).toBe(412)
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    const error = await failureOf(throwIfStale(response))
    expect(error).toMatchObject({ code: 'STALE_TOKEN', token: 6n, highest: 7n })
    expect(await response.json()).toEqual({
      status: 412,
      title: 'Precondition Failed',
      detail: error.message,
      code: 'STALE_TOKEN',
      token: '6',
      highest: '7',
    })
  })

  const good = { 'Fencing-Token': '7', 'Fencing-Resource': '"things/one"' }

  test.each<[string, Record<string, string | string[]>, number, RegExp]>([
    ['no token', {}, 428, /Fencing-Token is missing: send the token of your lease/],
    ['a negative token', { ...good, 'Fencing-Token': '-7' }, 400, /Fencing-Token must be one decimal number.*"-7"/],
    ['a fraction', { ...good, 'Fencing-Token': '7.5' }, 400, /Fencing-Token must be one decimal number.*"7.5"/],
    ['text', { ...good, 'Fencing-Token': 'seven' }, 400, /Fencing-Token must be one decimal number.*"seven"/],
    [
      'a token of 64 bits',
      { ...good, 'Fencing-Token': String(2n ** 63n) },
      400,
      /Fencing-Token must be .* below 2\^63/,
    ],
    ['a token above 64 bits', { ...good, 'Fencing-Token': String(2n ** 64n) }, 400, /Fencing-Token must be .* 2\^63/],
    ['a token twice', { ...good, 'Fencing-Token': ['7', '7'] }, 400, /Fencing-Token must be one .* not "7, 7"/],
    ['two resources', { ...good, 'Fencing-Resource': ['"things/one"', '"b"'] }, 400, /Fencing-Resource must be one/],
    ['another resource', { ...good, 'Fencing-Resource': '"b"' }, 400, /is "b", but this request is for "things\/one"/],
    ['a stale token', { ...good, 'Fencing-Token': '5' }, 412, /token 5 is refused: "things\/one" has seen 6/],
  ])('%s is refused before the body is read, and the answer says why', async (_, headers, status, detail) => {
    const seen: string[] = []
    const marks = memoryMarks()
    await marks.raise('things/one', { epoch: 0, token: 6n })
    const url = `${await start(marks, seen)}/things/one`
    const answer = await put(url, headers, 'x'.repeat(1_000_000))
    expect(answer).toMatchObject({ status, type: expect.stringMatching(/^application\/problem\+json/) })
    expect(JSON.parse(answer.body)).toMatchObject({ status, detail: expect.stringMatching(detail) })
    expect(seen).toEqual([])
    expect(await put(url, good, 'x'.repeat(1_000_000))).toMatchObject({ status: 200, body: '7' })
    expect(seen).toEqual(['parsed', 'handled'])
  })

  test('the server decides which resource a request is for', async () => {
    const ask = await open()
    expect((await ask('/things/two', show(7n))).status).toBe(400)
    const bare = { method: 'PUT', headers: { 'Fencing-Token': '7' } }
    expect((await ask('/things/two', bare)).status).toBe(200)
  })

  test('a refusal by the fence of the handler is a 412 too', async () => {
    const ask = await open(null)
    const name = `things/${kind}`
    expect((await ask(`/${name}`, show(7n, name))).status).toBe(200)
    const response = await ask(`/${name}`, show(6n, name))
    expect(await failureOf(throwIfStale(response))).toMatchObject({ code: 'STALE_TOKEN', token: 6n, highest: 7n })
  })

  test('unreachable marks are an error of the service', async () => {
    const ask = await open({ raise: () => Promise.reject(new Error('the disk is gone')) })
    expect((await ask('/things/one', show(7n))).status).toBe(500)
  })
})

test('a missing resource name is an error of the service, and the client cannot replace it', async () => {
  const mayGoOn = nodeFence(memoryMarks(), { resource: (({ params }: { params?: string }) => params) as () => string })
  const headers = { 'fencing-token': '7', 'fencing-resource': '"whatever"' }
  const response = { writeHead: () => {}, end: () => {} }
  expect(await failureOf(mayGoOn({ headers }, response))).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('a handler of an unchecked request gets an error', () => {
  expect(() => fenceOf({})).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test.each([
  [
    'a mistyped resource, which would let clients choose it',
    () => expressFence(memoryMarks(), { resourc: 'a' } as object),
  ],
  ['forgotten marks, which would check nothing', () => fastifyFence(undefined as never)],
  ['marks that are none', () => honoFence({} as never)],
])('%s is refused when the service starts', (_, make) => {
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})
