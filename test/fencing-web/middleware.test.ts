import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  expressFence,
  fastifyFence,
  fenceHeaders,
  fenceOf,
  honoFence,
  type Marks,
  memoryMarks,
  nodeFence,
  staleAnswer,
  throwIfStale,
} from '../../src/fencing/http/index.ts'
import { failureOf } from '../support.ts'

/** What a handler's own fence refuses. */
const own = memoryMarks()

async function handle(request: object): Promise<string> {
  const fence = fenceOf(request)
  await own.raise(fence.name, fence)
  return String(fence.token)
}

/** PUT /things/NAME is about the resource `things/NAME`, answers its token, and errors that are not of a fence by 500. */
const services: Record<
  string,
  (marks: Marks | null) => Promise<(path: string, init: RequestInit) => Promise<Response>>
> = {
  async node(marks) {
    const mayGoOn = nodeFence(marks, { resource: ({ url = '' }: IncomingMessage) => url.slice(1) })
    const server = createServer((request, response) => {
      mayGoOn(request, response)
        .then(async may => may && response.end(await handle(request)))
        .catch(error => {
          const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
          response.writeHead(status, headers).end(body)
        })
    })
    return served(server)
  },
  async express(marks) {
    const app = express()
    const resource = ({ params }: express.Request): string => `things/${params.name}`
    app.put('/things/:name', expressFence(marks, { resource }), async (request, response) => {
      response.send(await handle(request))
    })
    app.use(((error, _request, response, _next) => {
      const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
      response.writeHead(status, headers).end(body)
    }) as express.ErrorRequestHandler)
    return served(createServer(app))
  },
  async fastify(marks) {
    const app = fastify()
    onTestFinished(() => app.close())
    const resource = ({ url }: FastifyRequest): string => url.slice(1)
    app.put('/things/:name', { preHandler: fastifyFence(marks, { resource }) }, handle)
    app.setErrorHandler((error, _request, reply) => {
      const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
      return reply
        .code(status)
        .headers({ ...headers })
        .send(body)
    })
    await app.listen({ host: '127.0.0.1', port: 0 })
    return asking(app.server)
  },
  async hono(marks) {
    const app = new Hono()
    app.onError(error => {
      const { body, ...init } = staleAnswer(error) ?? { status: 500 }
      return new Response(body, init)
    })
    const fence = honoFence(marks, { resource: ({ req }: Context) => req.path.slice(1) })
    app.put('/things/:name', fence, async context => context.text(await handle(context)))
    return async (path, init) => app.request(path, init)
  },
}

async function served(server: Server): Promise<(path: string, init: RequestInit) => Promise<Response>> {
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return asking(server)
}

function asking(server: Server): (path: string, init: RequestInit) => Promise<Response> {
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

describe.each(Object.keys(services))('behind %s', kind => {
  const open = (marks: Marks | null = memoryMarks()): ReturnType<(typeof services)[string]> =>
    (services[kind] as (typeof services)[string])(marks)
  const show = (token: bigint, name = 'things/one'): RequestInit => ({
    method: 'PUT',
    headers: fenceHeaders({ name, token }),
  })

  test('the handler gets what was shown', async () => {
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

  test('a malformed token is answered 400, a missing one 428', async () => {
    const ask = await open()
    const headers = { ...fenceHeaders({ name: 'things/one', token: 7n }), 'Fencing-Token': '7, 8' }
    const responses = [
      await ask('/things/one', { method: 'PUT', headers }),
      await ask('/things/one', { method: 'PUT' }),
    ]
    expect(responses.map(({ status }) => status)).toEqual([400, 428])
    expect(await responses[0]?.json()).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('what a request is about is for the server to say', async () => {
    const ask = await open()
    expect((await ask('/things/two', show(7n))).status).toBe(400)
    const bare = { method: 'PUT', headers: { 'Fencing-Token': '7' } }
    expect((await ask('/things/two', bare)).status).toBe(200)
  })

  test('what the fence of the handler itself refuses is 412 too', async () => {
    const ask = await open(null)
    const name = `things/${kind}`
    expect((await ask(`/${name}`, show(7n, name))).status).toBe(200)
    const response = await ask(`/${name}`, show(6n, name))
    expect(await failureOf(throwIfStale(response))).toMatchObject({ code: 'STALE_TOKEN', token: 6n, highest: 7n })
  })

  test('marks that cannot be reached are an error of the service', async () => {
    const ask = await open({ raise: () => Promise.reject(new Error('the disk is gone')) })
    expect((await ask('/things/one', show(7n))).status).toBe(500)
  })
})

test('a handler that no request went through a check to is told so', () => {
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
