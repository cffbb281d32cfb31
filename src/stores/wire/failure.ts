import { LeaseError, messageOf } from '../../contract/errors.ts'
import { CHECK } from '../../contract/request.ts'

/** The error of a store that was closed. */
export function closed(): LeaseError {
  return new LeaseError('CLOSED', 'the store is closed')
}

/** The error for a server that cannot keep leases until somebody changes it. The message says what to change. */
export function unfit(message: string, cause?: unknown): LeaseError {
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false, ...(cause !== undefined && { cause }) })
}

/**
 * The text of an error. If a connection to several addresses of a host has failed, the error has no text, so this lists the
 * texts of its errors.
 */
export function textOf(error: unknown): string {
  const text = messageOf(error)
  if (text) return text
  if (error instanceof AggregateError) return error.errors.map(textOf).join('; ')
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : 'no reason given'
}

/** A cause with only the text and the code, because errors of clients contain queries, commands and passwords. */
export function causeOf(error: unknown): Error {
  const code = (error as { code?: unknown } | null)?.code
  return Object.assign(new Error(textOf(error)), typeof code === 'string' && { code })
}

/** The messages with which clients report a server without TLS, after an attempt with TLS. */
const PLAIN = /does not speak TLS|does not support (SSL|secure) connection|wrong version number/i

/** A hint for stores whose client waits without limit for an answer that another kind of server does not give. */
export function otherServer(engine: string, error: unknown): string {
  return textOf(error).startsWith('not connected within')
    ? `${CHECK}; perhaps it is another server than ${engine}`
    : CHECK
}

/**
 * The error for a request that no server answered. If the request was sent, its outcome is unknown. `hint`: a better hint
 * than `CHECK`.
 */
export function noAnswerFrom(engine: string, error: unknown, sent: boolean, hint: string = CHECK): LeaseError {
  const cause = causeOf(error)
  if (sent)
    return new LeaseError('OUTCOME_UNKNOWN', `no answer came from ${engine}: ${cause.message}${CHECK}`, { cause })
  const message = `${engine} cannot be reached: ${cause.message}`
  if (!PLAIN.test(cause.message)) return new LeaseError('STORE_UNAVAILABLE', message + hint, { cause })
  const cure = '; the URL or the client asks for TLS: leave it out, or use another port'
  return new LeaseError('INVALID_ARGUMENT', message + cure, { cause })
}
