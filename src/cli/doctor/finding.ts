/** How serious a finding is. The exit code of `holdfast doctor` is the index of the worst one. */
export const LEVELS = ['ok', 'warning', 'problem'] as const

/** One thing that `holdfast doctor` found out about a store. */
export interface Finding {
  /** Stable. docs/operations/doctor.md lists it with its cure. */
  readonly id: string
  readonly level: (typeof LEVELS)[number]
  readonly what: string
  /** What it means for leases. Empty if `ok`. */
  readonly why: string
  /** What to do. Empty if `ok`. */
  readonly advice: string
}

/** A finding of level `ok`. */
export function ok(id: string, what: string): Finding {
  return { id, level: 'ok', what, why: '', advice: '' }
}

export function warning(id: string, what: string, why: string, advice: string): Finding {
  return { id, level: 'warning', what, why, advice }
}

export function problem(id: string, what: string, why: string, advice: string): Finding {
  return { id, level: 'problem', what, why, advice }
}

/** The time of the server compared with this machine, for information: no promise depends on it. In ms. */
export function clockFinding(server: number, sent: number, received: number): Finding {
  const ahead = Math.round(server - (sent + received) / 2)
  const side = ahead < 0 ? 'behind' : 'ahead of'
  return ok('clock', `the clock of the server is ${Math.abs(ahead)} ms ${side} the clock of this machine`)
}

/** `isEncrypted`: does the connection use TLS? A connection within this machine needs none. */
export function tlsFinding(host: string, isEncrypted: boolean): Finding {
  if (isEncrypted) return ok('tls', 'the connection uses TLS')
  if (/^(localhost|127\.[\d.]+|\[?::1\]?|\/.*|%2F.*|)$/i.test(host)) return ok('tls', 'the server is on this machine')
  const why = 'others on the network can read and change leases, and read the password'
  return warning('tls', `the connection to ${host} does not use TLS`, why, 'use TLS to servers on other machines')
}
