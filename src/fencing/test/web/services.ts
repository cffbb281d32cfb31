import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { onTestFinished } from 'vitest'
import {
  expressFence,
  fastifyFence,
  fenceOf,
  honoFence,
  type Marks,
  memoryMarks,
  nodeFence,
  staleAnswer,
} from '../../http/index.ts'

/** What a handler's own fence refuses. */
const own = memoryMarks()

async function handle(request: object, seen: string[]): Promise<string> {
  seen.push('handled')
  const fence = fenceOf(request)
  await own.raise(fence.name, fence)
  return String(fence.token)
}

/**
 * Starts a service: PUT /things/NAME is about the resource `things/NAME`, takes text, answers its token, and errors that
 * are not of a fence by 500. Tells `seen` when it has parsed a body, and when its handler began. Resolves to its address.
 */
export type Start = (marks: Marks | null, seen: string[]) => Promise<string>

export const services: Readonly<Record<string, Start>> = {
  async node(marks, seen) {
    const mayGoOn = nodeFence(marks, { resource: ({ url = '' }: IncomingMessage) => url.slice(1) })
    const server = createServer(async (request, response) => {
      try {
        if (!(await mayGoOn(request, response))) return
        await text(request)
        seen.push('parsed')
        response.end(await handle(request, seen))
      } catch (error) {
        const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
        response.writeHead(status, headers).end(body)
      }
    })
    return served(server)
  },
  async express(marks, seen) {
    const app = express()
    const fence = expressFence(marks, { resource: ({ params }: express.Request) => `things/${params.name}` })
    const parser = express.text({ limit: '9mb', verify: () => void seen.push('parsed') })
    app.put('/things/:name', fence, parser, async (request, response) => {
      response.send(await handle(request, seen))
    })
    app.use(((error, _request, response, _next) => {
      const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
      response.writeHead(status, headers).end(body)
    }) as express.ErrorRequestHandler)
    return served(createServer(app))
  },
  async fastify(marks, seen) {
    const app = fastify({ bodyLimit: 9e6 })
    onTestFinished(() => app.close())
    app.addContentTypeParser('text/plain', { parseAs: 'string' }, (_request, body, done) => {
      seen.push('parsed')
      done(null, body)
    })
    const fence = fastifyFence(marks, { resource: ({ url }: FastifyRequest) => url.slice(1) })
    app.put('/things/:name', { onRequest: fence }, request => handle(request, seen))
    app.setErrorHandler((error, _request, reply) => {
      const { status, headers, body } = staleAnswer(error) ?? { status: 500 }
      return reply
        .code(status)
        .headers({ ...headers })
        .send(body)
    })
    return app.listen({ host: '127.0.0.1', port: 0 })
  },
  async hono(marks, seen) {
    const app = new Hono()
    app.onError(error => {
      const { body, ...init } = staleAnswer(error) ?? { status: 500 }
      return new Response(body, init)
    })
    const fence = honoFence(marks, { resource: ({ req }: Context) => req.path.slice(1) })
    app.put('/things/:name', fence, async context => {
      await context.req.text()
      seen.push('parsed')
      return context.text(await handle(context, seen))
    })
    return served(createAdaptorServer(app) as Server)
  },
}

async function served(server: Server): Promise<string> {
  server.keepAliveTimeout = 60_000 // a busy machine would send a request just as an idle connection is closed
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
