import { checkKeys, invalid, show } from '../../contract/check.ts'
import type { Marks } from '../mark.ts'
import { type Checked, type CheckOptions, checkFence, setFence } from './check.ts'
import type { RequestHeaders } from './headers.ts'
import { answerOf } from './problem.ts'

const middlewareKeys = new Set(['resource', 'required'])

/** Of all four. With `null` for marks, what a request shows is read and not checked, as in `checkFence`. */
export interface MiddlewareOptions<Request> extends Pick<CheckOptions, 'required'> {
  /** What a request is about; a header that names another is refused. @default the header */
  readonly resource?: string | ((request: Request) => string) | undefined
}

/** As much of a request as is looked at: of Node, Express, Fastify. */
export interface ServerRequest {
  readonly headers: Extract<RequestHeaders, { readonly [name: string]: unknown }>
}

/** As much of a response as is used: of Node and Express. */
export interface ServerResponse {
  writeHead(status: number, headers: Record<string, string>): unknown
  end(body: string): unknown
}

/** As much of a reply of Fastify as is used. */
export interface FastifyReply {
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body: string): unknown
}

/** As much of a context of Hono as is looked at. */
export interface HonoContext {
  readonly req: { readonly raw: { readonly headers: Extract<RequestHeaders, { get(name: string): string | null }> } }
}

/**
 * For Node's own server: resolves to whether the handler may go on. If not, the request was answered. What it showed is
 * `fenceOf(request)`. Rejects with what is not about the fence.
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

/** For Express, Connect and the like: before the parser of bodies. */
export function expressFence<Request extends ServerRequest>(
  marks: Marks | null,
  options: MiddlewareOptions<Request> = {},
): (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void {
  const mayGoOn = nodeFence(marks, options)
  return (request, response, next) => {
    mayGoOn(request, response).then(may => may && next(), next)
  }
}

/** For Fastify, as `onRequest`, before it reads the body; as `preHandler` where the body says what the request is about. */
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

/** For Hono, on any runtime that it runs on with Node's API. */
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
    const about = typeof resource === 'function' ? resource(request) : resource
    // The client's header would decide, and pass the fence of this resource by the name of another.
    if (resource !== undefined && typeof about !== 'string')
      throw invalid(`the resource of a request must be a string, not ${show(about)}`)
    const checked = await checkFence(headers, marks, { resource: about, required })
    setFence(request, checked.fence)
    return checked
  }
}
