import { LeaseError } from '../../src/index.ts'

interface Answer {
  readonly status: 409 | 423 | 503
  readonly headers: Record<string, string>
  readonly body: string
}

/** The HTTP answer to an error of a lease. `busy`: its status if the name is held. `undefined`: the service's own 500. */
export function leaseAnswer(error: unknown, busy: 409 | 503 = 409): Answer | undefined {
  const leaseError = LeaseError.from(error)
  switch (leaseError?.code) {
    case 'BUSY': // nothing has begun
      return answer(busy, leaseError.code, 1)
    case 'LEASE_LOST': // it began, and another may hold the name now
    case 'MAX_HOLD':
    case 'STALE_TOKEN':
      return answer(423, leaseError.code)
    case 'TOO_MANY_WAITERS': // nothing has begun
    case 'STORE_UNAVAILABLE':
    case 'OUTCOME_UNKNOWN':
    case 'CLOSED': // this instance shuts down
      return answer(503, leaseError.code, Math.ceil((leaseError.retryAfter ?? 1_000) / 1_000))
    default: // others are mistakes in the service or its settings
      return undefined
  }
}

function answer(status: Answer['status'], code: string, retryAfter?: number): Answer {
  const headers: Record<string, string> = { 'content-type': 'application/problem+json' }
  if (retryAfter !== undefined) headers['retry-after'] = `${retryAfter}`
  return { status, headers, body: JSON.stringify({ status, code }) } // not the holder: it names a machine
}
