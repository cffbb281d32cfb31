import { checkDuration, checkKeys, invalid, show } from '../../contract/check.ts'
import type { LeaseError, LeaseErrorCode } from '../../contract/errors.ts'
import { type AnswerBody, bytesOf } from '../answer.ts'
import { isRefusal, type Objects, requestFailed, withoutSecrets, withoutTag } from './objects.ts'

/** A request in the form that `fetch` takes. */
export interface ObjectRequest {
  readonly method: 'GET' | 'PUT'
  readonly headers: Record<string, string>
  readonly body?: ArrayBuffer
  /** Redirects are not followed: a login page at the end of one may answer 200. */
  readonly redirect: 'manual'
  readonly signal: AbortSignal
}

/** The part of a `Response` that is read. */
export interface ObjectResponse extends AnswerBody {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

export interface HttpObjectsOptions {
  /** Sends a request, for example after signing it. @default the global `fetch` */
  readonly send?: ((url: string, request: ObjectRequest) => Promise<ObjectResponse>) | undefined
  /** Additional headers of every request, such as `authorization` and `content-type`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The time limit of one request, in milliseconds. @default 30_000 */
  readonly timeout?: number | undefined
  /** The largest answer that is read, in bytes. The fence keeps an object in memory. @default 64 MB */
  readonly maxBytes?: number | undefined
}

// Compression changes an ETag, and a cache may be stale.
const CURRENT = { 'accept-encoding': 'identity', 'cache-control': 'no-cache' }

/**
 * Objects by URL: in WebDAV, in S3 with a `send` that signs, and in any other service that returns ETags and evaluates
 * `If-Match` and `If-None-Match: *` atomically with the write.
 *
 * Not promised: that the server is atomic. Many compare first and write later; see docs/fencing/objects-and-files.md.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function httpObjects(options: HttpObjectsOptions = {}): Objects {
  checkKeys(options, new Set(['send', 'headers', 'timeout', 'maxBytes']), 'httpObjects')
  const { send = fetch, headers: always = {}, timeout = 30_000, maxBytes = 64_000_000 } = options
  checkDuration(timeout, 'timeout')
  if (!(maxBytes >= 1)) throw invalid(`maxBytes must be a number of bytes, 1 or more, not ${show(maxBytes)}`)
  checkHeaders(always)

  async function ask(
    url: string,
    request: Omit<ObjectRequest, 'signal' | 'redirect'>,
    caller: AbortSignal | undefined,
    failed: LeaseErrorCode,
  ): Promise<{ status: number; tag: string | null; body: Uint8Array }> {
    // No message repeats the URL: it may contain a password or a signature.
    if (!URL.canParse(url)) throw invalid('an object needs a full URL, such as https://host/path')
    const { username, password } = new URL(url)
    if (send === fetch && (username || password))
      throw invalid('fetch sends no user name or password of a URL: give the option headers an authorization')
    const late = AbortSignal.timeout(timeout)
    try {
      const signal = caller ? AbortSignal.any([caller, late]) : late
      const response = await send(url, {
        ...request,
        headers: { ...always, ...request.headers },
        redirect: 'manual',
        signal,
      })
      const body = await bytesOf(response, maxBytes)
      return { status: response.status, tag: response.headers.get('etag'), body }
    } catch (error) {
      caller?.throwIfAborted()
      const reason = late.aborted ? `no answer within ${timeout} ms` : reasonOf(error)
      const what = `${request.method} ${withoutSecrets(url)} failed: ${reason.replaceAll(url, withoutSecrets(url))}`
      throw requestFailed(what, undefined, failed, { cause: error })
    }
  }

  return {
    async read(url, signal) {
      const { status, tag, body } = await ask(url, { method: 'GET', headers: CURRENT }, signal, 'STORE_UNAVAILABLE')
      if (status === 404 || status === 410) return undefined
      if (status !== 200) throw refused(`GET ${withoutSecrets(url)}`, status, body, 'STORE_UNAVAILABLE')
      if (tag) return { tag, body }
      throw withoutTag(withoutSecrets(url))
    },
    async write(url, body, tag, signal) {
      const headers: Record<string, string> = tag === undefined ? { 'if-none-match': '*' } : { 'if-match': tag }
      const request = { method: 'PUT', headers, body: new Uint8Array(body).buffer } as const
      const answer = await ask(url, request, signal, 'OUTCOME_UNKNOWN')
      if (answer.status >= 200 && answer.status < 300) return true
      if (isRefusal(answer.status, tag) || isConflict(answer)) return false
      throw refused(`PUT ${withoutSecrets(url)}`, answer.status, answer.body, 'OUTCOME_UNKNOWN')
    },
  }
}

/** S3 answers 409 while another conditional write runs. In WebDAV a 409 means that the folder does not exist. */
function isConflict({ status, body }: { status: number; body: Uint8Array }): boolean {
  return status === 409 && Buffer.from(body).includes('ConditionalRequestConflict')
}

function refused(what: string, status: number, body: Uint8Array, failed: LeaseErrorCode): LeaseError {
  const text = `${what} was answered ${status}: ${show(Buffer.from(body.subarray(0, 60)).toString())}`
  return requestFailed(text, status, failed)
}

/** The error of `fetch` would repeat the value, such as a token with a line break in it. */
function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]])
    } catch {
      throw invalid(`the header ${show(name)} cannot be sent: remove line breaks and other special characters`)
    }
  }
}

/** `fetch` puts the reason of a refused connection into the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error && cause.message ? `${message}, ${cause.message}` : message
}
