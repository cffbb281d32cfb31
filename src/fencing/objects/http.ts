import { checkKeys, invalid, show } from '../../contract/check.ts'
import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import type { Objects } from './objects.ts'

/** As much of a request as is asked for: `fetch` takes it, and whatever signs requests and has its form. */
export interface ObjectRequest {
  readonly method: 'GET' | 'PUT'
  readonly headers: Record<string, string>
  readonly body?: ArrayBuffer
  /** A page to log in, to which a write is led away, may well answer 200. */
  readonly redirect: 'manual'
  readonly signal: AbortSignal
}

/** As much of a `Response` as is looked at. */
export interface ObjectResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  arrayBuffer(): Promise<ArrayBuffer>
}

export interface HttpObjectsOptions {
  /** Sends the requests. @default the global `fetch` */
  readonly send?: ((url: string, request: ObjectRequest) => Promise<ObjectResponse>) | undefined
  /** Sent along, such as `authorization` and `content-type`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Milliseconds that one request may take. @default 30_000 */
  readonly limit?: number | undefined
}

// Neither compressed, which changes an ETag, nor out of a cache.
const CURRENT = { 'accept-encoding': 'identity', 'cache-control': 'no-cache' }

/**
 * Objects by URL: of WebDAV, of S3 and its like behind a `send` that signs, of anything else that answers ETags and
 * honours `If-Match` and `If-None-Match: *` in one step with the write.
 *
 * Not promised: that the server does. Many compare first and write later; see docs/fencing/objects-and-files.md.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function httpObjects(options: HttpObjectsOptions = {}): Objects {
  checkKeys(options, new Set(['send', 'headers', 'limit']), 'httpObjects')
  const { send = fetch, headers: always = {}, limit = 30_000 } = options

  async function ask(
    url: string,
    request: Omit<ObjectRequest, 'signal' | 'redirect'>,
    caller: AbortSignal | undefined,
    failed: LeaseErrorCode,
  ): Promise<{ status: number; tag: string | null; body: Uint8Array }> {
    if (!URL.canParse(url)) throw invalid(`an object needs a whole URL, such as https://host/path, not ${show(url)}`)
    const late = AbortSignal.timeout(limit)
    try {
      const signal = caller ? AbortSignal.any([caller, late]) : late
      const response = await send(url, {
        ...request,
        headers: { ...always, ...request.headers },
        redirect: 'manual',
        signal,
      })
      const body = new Uint8Array(await response.arrayBuffer())
      return { status: response.status, tag: response.headers.get('etag'), body }
    } catch (error) {
      caller?.throwIfAborted()
      const reason = late.aborted ? `no answer within ${limit} ms` : reasonOf(error)
      throw new LeaseError(failed, `${request.method} ${url} failed: ${reason}`, { cause: error })
    }
  }

  return {
    async read(url, signal) {
      const { status, tag, body } = await ask(url, { method: 'GET', headers: CURRENT }, signal, 'STORE_UNAVAILABLE')
      if (status === 404 || status === 410) return undefined
      if (status !== 200) throw refused(`GET ${url}`, status, body, 'STORE_UNAVAILABLE')
      if (tag) return { tag, body }
      throw new LeaseError('STORE_UNAVAILABLE', `GET ${url} answered no ETag: its server cannot fence`, {
        retryable: false,
      })
    },
    async write(url, body, tag, signal) {
      const headers: Record<string, string> = tag === undefined ? { 'if-none-match': '*' } : { 'if-match': tag }
      const request = { method: 'PUT', headers, body: new Uint8Array(body).buffer } as const
      const answer = await ask(url, request, signal, 'OUTCOME_UNKNOWN')
      if (answer.status >= 200 && answer.status < 300) return true
      if (isRefusal(answer.status, tag) || isConflict(answer)) return false
      throw refused(`PUT ${url}`, answer.status, answer.body, 'OUTCOME_UNKNOWN')
    },
  }
}

/** 404: the object that was read is gone. */
export function isRefusal(status: number | undefined, tag: string | undefined): boolean {
  return status === 412 || (status === 404 && tag !== undefined)
}

/** S3 had another conditional write under way. Of WebDAV a 409 says that there is no such folder. */
function isConflict({ status, body }: { status: number; body: Uint8Array }): boolean {
  return status === 409 && Buffer.from(body).includes('ConditionalRequestConflict')
}

function refused(what: string, status: number, body: Uint8Array, failed: LeaseErrorCode): LeaseError {
  const said = `${what} was answered ${status}: ${show(Buffer.from(body.subarray(0, 60)).toString())}`
  if (status >= 500 || status === 429) return new LeaseError(failed, said)
  return new LeaseError('STORE_UNAVAILABLE', said, { retryable: false })
}

/** What `fetch` says of a refused connection is in its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error && cause.message ? `${message}, ${cause.message}` : message
}
