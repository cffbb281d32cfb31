import { LeaseError } from '../../contract/errors.ts'

/** The error of a store that was closed. */
export function closed(): LeaseError {
  return new LeaseError('CLOSED', 'the store is closed')
}

/** What an error says; a failed connection to several addresses of a host has no text of its own. */
export function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text || (error instanceof AggregateError ? error.errors.map(textOf).join('; ') : 'no reason given')
}

/** A cause for the caller with the text and code alone: errors of clients carry queries, commands and passwords. */
export function causeOf(error: unknown): Error {
  const code = (error as { code?: unknown } | null)?.code
  return Object.assign(new Error(textOf(error)), typeof code === 'string' && { code })
}

/** The error for a request that no server answered. If it had left, its outcome is unknown. */
export function noAnswerFrom(engine: string, error: unknown, sent: boolean, hint: string = ''): LeaseError {
  const cause = causeOf(error)
  return sent
    ? new LeaseError('OUTCOME_UNKNOWN', `no answer came from ${engine}: ${cause.message}`, { cause })
    : new LeaseError('STORE_UNAVAILABLE', `${engine} cannot be reached: ${cause.message}${hint}`, { cause })
}
