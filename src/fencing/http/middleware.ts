import { checkKeys, invalid, show } from '../../contract/check.ts'
import type { Marks } from '../mark.ts'
import { type Checked, type CheckOptions, checkFence, setFence } from './check.ts'
import type { RequestHeaders } from './headers.ts'
import { answerOf } from './problem.ts'

const middlewareKeys = new Set(['resource', 'required'])

/** The options of all four middlewares. With `null` for marks they only parse the headers, as `checkFence` does. */
export interface MiddlewareOptions<Request> extends Pick<CheckOptions, 'required'> {
  /** The resource that a request writes to. A header with another resource is refused. @default the header */
  readonly resource?: string | ((request: Request) => string) | undefined
}

/** The part of a request that the middleware reads: Node, Express, Fastify. */
export interface ServerRequest {
  readonly headers: Extract<RequestHeaders, { readonly [name: string]: unknown }>
}

/** The part of a response that the middleware uses: Node and Express. */
export interface ServerResponse {
  writeHead(status: number, headers: Record<string, string>): unknown
  end(body: string): unknown
}

/** The part of a Fastify reply that the middleware uses. */
export interface FastifyReply {
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body: string): unknown
}

/** The part of a Hono context that the middleware reads. */
export interface HonoContext {
  readonly req: { readonly raw: { readonly headers: Extract<RequestHeaders, { get(name: string): string | null }> } }
}

/**
 * A check for Node's own server. Resolves to true if the handler may continue. If false, the request has been answered.
 * The handler gets what the request presented from `fenceOf(request)`. Rejects with errors of the marks other than a refusal.
 */
export function nodeFence<Request extends ServerRequest>(
  marks: Marks | null,
  options: MiddlewareOptions<Request> = {},
): (request: Request, response: ServerResponse) => Promise<boolean> {
  const check = checker(marks, options)
  return async (request, response) => {
    const { problem } = await check(request, request.headers)
    if (!problem) return true
    const { status, headers, body } = answerOf(problem)
    response.writeHead(status, headers)
    response.end(body)
    return false
  }
}

/** A middleware for Express and Connect. Put it before the body parser. */
export function expressFence<Request extends ServerRequest>(
  marks: Marks | null,
  options: MiddlewareOptions<Request> = {},
): (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void {
  const check = nodeFence(marks, options)
  return (request, response, next) => {
    check(request, response).then(mayContinue => mayContinue && next(), next)
  }
}

/** A hook for Fastify: `onRequest`, before it reads the body, or `preHandler` if the resource depends on the body. */
export function fastifyFence<Request extends ServerRequest>(
  marks: Marks | null,
  options: MiddlewareOptions<Request> = {},
): (request: Request, reply: FastifyReply) => Promise<unknown> {
  const check = checker(marks, options)
  return async (request, reply) => {
    const { problem } = await check(request, request.headers)
    if (!problem) return undefined
    const { status, headers, body } = answerOf(problem)
    reply.code(status)
    reply.headers(headers)
    reply.send(body)
    return reply
  }
}

/** A middleware for Hono, on every runtime that has Node's API. */
export function honoFence<Context extends HonoContext>(
  marks: Marks | null,
  options: MiddlewareOptions<Context> = {},
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const check = checker(marks, options)
  return async (context, next) => {
    const { problem } = await check(context, context.req.raw.headers)
    if (problem) {
      const { body, ...rest } = answerOf(problem)
      return new Response(body, rest)
    }
    await next()
    return undefined
  }
}

function checker<Request extends object>(
  marks: Marks | null,
  options: MiddlewareOptions<Request>,
): (request: Request, headers: RequestHeaders) => Promise<Checked> {
  checkKeys(options, middlewareKeys, 'a fence of requests')
  const { resource, required } = options
  if (marks !== null && typeof marks?.raise !== 'function')
    throw invalid(`a fence of requests needs marks, or null if the handler checks, not ${show(marks)}`)
  return async (request, headers) => {
    const name = typeof resource === 'function' ? resource(request) : resource
    // Otherwise the client's header would decide, and a client could avoid the fence by naming another resource.
    if (resource !== undefined && typeof name !== 'string')
      throw invalid(`the option resource must give a string for each request, not ${show(name)}`)
    const checked = await checkFence(headers, marks, { resource: name, required })
    setFence(request, checked.fence)
    return checked
  }
}
