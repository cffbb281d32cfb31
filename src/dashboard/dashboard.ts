import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { checkKeys, checkStoredName, invalid } from '../contract/check.ts'
import { subscribe } from '../contract/events.ts'
import { mask } from '../contract/mask.ts'
import { printable } from '../contract/printable.ts'
import type { Locks } from '../create-locks.ts'
import { breakShown } from './break.ts'
import { detail } from './detail.ts'
import { guarded, isNavigation, refusal } from './guard.ts'
import { Nodes } from './nodes.ts'
import { NO_ACCESS_PAGE, PAGE, SOURCES } from './page.ts'
import { type Look, Survey } from './survey.ts'
import { overview, type Process } from './view.ts'

/** What a caller may do: nothing, see all names, or also break a lease. */
export type Access = 'none' | 'read' | 'operate'

/** What `authorize` judges. */
export interface AccessContext {
  /** The request without its body. */
  readonly request: Request
  /** Node's request, if it came through `handler`. It carries what a framework has added, such as the user. */
  readonly node?: IncomingMessage
}

export interface DashboardOptions {
  /** Called for every request. If it throws or returns anything else, the request is refused. */
  authorize(context: AccessContext): Access | PromiseLike<Access>
  /** The store that the page names, such as its URL. User, password and options are left out. @default '' */
  readonly store?: string | undefined
}

/**
 * The dashboard. It can be mounted at any path. Disposing of it ends the streams within a second. Later requests get 503.
 * It does not close the locks.
 */
export interface Dashboard extends AsyncDisposable {
  /** Handles a request of Node's server, Express, Fastify or Nest. It does not read the body. */
  handler(request: IncomingMessage, response: ServerResponse): void
  /** Handles a request of Hono and other servers that use web standards. */
  fetch(request: Request): Promise<Response>
}

const NO_ACCESS = 'You have no access. For holdfast dashboard, open the address that it printed, with its token'

/** Milliseconds after which a page must ask for its events again, so that withdrawn access ends. */
const LONGEST_STREAM = 60_000

/** Milliseconds after the end of a stream in which a viewer must have read the rest. Then its connection is cut. */
const GRACE = 1_000

/** A host and a port. Anything else in the header would become part of the path or the query of the URL. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i

const HEADERS = guarded(SOURCES)
/** A proxy must neither collect events, as nginx does, nor compress them. */
const STREAM = {
  ...HEADERS,
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}
const known = new Set(['authorize', 'store'])

/**
 * A page that shows who holds each name, who waits, and which names changed holders. It looks at the store while
 * somebody watches and for a minute after that, for all viewers together. Throws `INVALID_ARGUMENT` without `authorize`.
 */
export function dashboard(locks: Pick<Locks, 'list' | 'inspect' | 'break'>, options: DashboardOptions): Dashboard {
  checkKeys(options, known, 'dashboard')
  if (typeof options?.authorize !== 'function')
    throw invalid("dashboard needs authorize, a function that returns 'none', 'read' or 'operate' for a request")
  if (typeof (options.store ?? '') !== 'string')
    throw invalid(`store must be a string, such as redis://cache:6379, not ${typeof options.store}`)
  if (typeof locks?.list !== 'function') throw invalid('dashboard needs locks, such as createLocks(store)')
  return new Board(locks, options)
}

class Board implements Dashboard {
  readonly #locks: Pick<Locks, 'list' | 'inspect' | 'break'>
  readonly #options: DashboardOptions
  readonly #store: string
  readonly #survey: Survey
  readonly #nodes: Nodes
  readonly #streams = new Set<() => void>()
  readonly #responses = new Map<ServerResponse, Promise<void>>()
  readonly #process: Process = { acquired: 0, lost: 0 }
  readonly #unsubscribe: readonly (() => void)[]
  #isClosed = false
  /** The events written from the latest look, by access. */
  #written: { readonly look: Look | undefined; readonly events: Map<Access, Uint8Array> } = {
    look: undefined,
    events: new Map(),
  }

  constructor(locks: Pick<Locks, 'list' | 'inspect' | 'break'>, options: DashboardOptions) {
    this.#locks = locks
    this.#options = options
    this.#store = withoutSecrets(options.store ?? '')
    this.#survey = new Survey(locks)
    this.#nodes = new Nodes(locks)
    this.#unsubscribe = [
      subscribe('lease_acquired', ({ lease }) => {
        this.#process.acquired += 1
        this.#survey.learn(lease.name)
      }),
      subscribe('lease_lost', () => {
        this.#process.lost += 1
      }),
    ]
  }

  handler = (node: IncomingMessage, response: ServerResponse): void => {
    this.#serve(node, response).catch(() => response.destroy()) // the caller has left
  }

  fetch = (request: Request): Promise<Response> => this.#answer({ request })

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const end of this.#streams) end()
    const timer = setTimeout(() => {
      for (const response of this.#responses.keys()) response.destroy()
    }, GRACE)
    await Promise.allSettled([this.#survey.close(), ...this.#responses.values()])
    clearTimeout(timer)
  }

  async #serve(node: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = requestOf(node)
    const answer = request ? await this.#answer({ request, node }) : problem(400, 'The request is not valid')
    // The caller may have left meanwhile. `pipeline` would leave the body alone, and its error would have no listener.
    if (response.destroyed) return void (await answer.body?.cancel())
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (!answer.body || node.method === 'HEAD') return void response.end()
    // A viewer that does not read would keep the connection after its access, and the dashboard, have ended.
    const timer = setTimeout(() => response.destroy(), LONGEST_STREAM + GRACE).unref()
    const written = pipeline(Readable.fromWeb(answer.body as never), response)
    this.#responses.set(response, written)
    await written.finally(() => {
      clearTimeout(timer)
      this.#responses.delete(response)
    })
  }

  async #answer(context: AccessContext): Promise<Response> {
    const { request } = context
    const access = await this.#access(context)
    // It no longer looks at the store, so what it knows is old.
    if (this.#isClosed) return problem(503, 'The dashboard is closed')
    if (access === 'none') return isNavigation(request) ? page(403, NO_ACCESS_PAGE) : problem(403, NO_ACCESS)
    const refused = refusal(request)
    if (refused !== undefined) return problem(403, refused)
    const { searchParams } = new URL(request.url)
    const api = searchParams.get('api')
    const name = searchParams.get('name') ?? ''
    if (request.method === 'POST') {
      if (api !== 'break') return problem(404, 'There is no such change')
      if (access !== 'operate') return problem(403, 'You may read, but not break a lease')
      const [typed, of] = [searchParams.get('typed') ?? '', searchParams.get('token') ?? '']
      return json(...(await breakShown(this.#locks, { name, typed, of })))
    }
    if (api === null) return page(200, PAGE)
    if (api === 'events') {
      const hasReader = request.method !== 'HEAD' && !request.signal.aborted
      return hasReader ? this.#events(access, request.signal) : new Response(null, { headers: STREAM })
    }
    if (api === 'name') {
      // Another program may have written any name.
      if (isStoredName(name)) this.#survey.learn(name)
      else if (!this.#survey.latest?.sights.has(name)) return problem(400, 'This is not a name')
      return json(200, { ...detail(name, this.#survey.latest), nodes: (await this.#nodes.get(name)) ?? [] })
    }
    return problem(404, 'There is no such view')
  }

  async #access(context: AccessContext): Promise<Access> {
    try {
      const access = await this.#options.authorize(context)
      return access === 'read' || access === 'operate' ? access : 'none'
    } catch {
      return 'none'
    }
  }

  /** A line of JSON for each look. A page that reads too slowly misses looks. */
  #events(access: Access, signal: AbortSignal): Response {
    let end = (): void => {}
    const body = new ReadableStream<Uint8Array>({
      start: controller => {
        const leave = this.#survey.watch(look => {
          if ((controller.desiredSize ?? 0) <= 0) return
          controller.enqueue(this.#event(look, access))
        })
        const timer = setTimeout(() => end(), LONGEST_STREAM).unref()
        let isOver = false
        end = () => {
          if (isOver) return
          isOver = true
          leave()
          clearTimeout(timer)
          this.#streams.delete(end)
          signal.removeEventListener('abort', end)
          try {
            // A viewer that is behind by now does not read.
            if ((controller.desiredSize ?? 1) > 0) controller.close()
            else controller.error(new Error('the viewer does not read'))
          } catch {
            // The reader has cancelled the stream.
          }
        }
        this.#streams.add(end)
        signal.addEventListener('abort', end)
      },
      cancel: () => end(),
    })
    return new Response(body, { headers: STREAM })
  }

  /** The event for a look. It is written once for all viewers, because with many viewers this takes the longest. */
  #event(look: Look, access: Access): Uint8Array {
    if (this.#written.look !== look) this.#written = { look, events: new Map() }
    const { events } = this.#written
    const known = events.get(access)
    if (known) return known
    const event = Buffer.from(`data: ${JSON.stringify(overview(look, access, this.#process, this.#store))}\n\n`)
    events.set(access, event)
    return event
  }
}

/** A URL without its user, password and options. */
function withoutSecrets(url: string): string {
  return printable(
    mask(url)
      .replace(/\/\/[^/\s]*@/, '//')
      .replace(/[?#].*/, ''),
  )
}

function requestOf(node: IncomingMessage): Request | undefined {
  const { url: path = '/' } = node
  const { host = 'localhost' } = node.headers
  if (!path.startsWith('/') || !HOST.test(host)) return undefined // the path of a request to a proxy begins with a host
  try {
    const headers = new Headers()
    for (const [name, values = []] of Object.entries(node.headersDistinct))
      for (const value of values) headers.append(name, value)
    // Do not resolve the path relative to the host: a path that begins with // would name another host.
    return new Request(`http://${host}${path}`, { method: node.method ?? 'GET', headers })
  } catch {
    return undefined
  }
}

function isStoredName(name: string): boolean {
  try {
    checkStoredName(name)
    return true
  } catch {
    return false
  }
}

function page(status: number, html: string): Response {
  return new Response(html, { status, headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8' } })
}

function json(status: number, data: unknown): Response {
  return new Response(JSON.stringify(data), { status, headers: { ...HEADERS, 'content-type': 'application/json' } })
}

function problem(status: number, message: string): Response {
  return json(status, { error: message })
}
