/** How serious a finding is. The exit code of `holdfast doctor` is the index of the worst one. */
export const LEVELS = ['ok', 'warning', 'problem'] as const

/** One thing that `holdfast doctor` found out about a store. */
export interface Finding {
  /** The stable id. docs/operations/doctor.md lists it with its fix. */
  readonly id: string
  readonly level: (typeof LEVELS)[number]
  readonly what: string
  /** What it means for leases. Empty if `ok`. */
  readonly why: string
  /** What to do. Empty if `ok`. */
  readonly advice: string
}

/** Makes a finding of level `ok`. */
export function ok(id: string, what: string): Finding {
  return { id, level: 'ok', what, why: '', advice: '' }
}

export function warning(id: string, what: string, why: string, advice: string): Finding {
  return { id, level: 'warning', what, why, advice }
}

export function problem(id: string, what: string, why: string, advice: string): Finding {
  return { id, level: 'problem', what, why, advice }
}

/** Compares the server's time with this machine's, in ms. It is for information: no promise depends on it. */
export function clockFinding(server: number, sent: number, received: number): Finding {
  const ahead = Math.round(server - (sent + received) / 2)
  const side = ahead < 0 ? 'behind' : 'ahead of'
  return ok('clock', `the server is ${Math.abs(ahead)} ms ${side} this machine`)
}

/** `isEncrypted`: does the connection use TLS? A connection within this machine needs none. `hosts`: all servers. */
export function tlsFinding(hosts: string | readonly string[], isEncrypted: boolean): Finding {
  if (isEncrypted) return ok('tls', 'the connection uses TLS')
  const local = /^(localhost|127\.[\d.]+|\[?::1\]?|\/.*|%2F.*|)$/i
  const host = [hosts].flat().find(each => !local.test(each))
  if (host === undefined) return ok('tls', 'the server is on this machine')
  const why = 'others on the network can read and change leases, and read the password'
  return warning('tls', `the connection to ${host} does not use TLS`, why, 'use TLS to servers on other machines')
}

/** Did the server refuse a command, because this user may not run it or because it is disabled? */
export function isRefusal(error: unknown): boolean {
  return /NOPERM|no permissions|(permission|command) denied|unknown command|disabled command/i.test(String(error))
}

/** Collects one answer from each server, by its address. If none answers, rejects with the first server's error. */
export async function answersOf<Server, Answer>(
  servers: readonly Server[],
  nameOf: (server: Server) => string,
  ask: (server: Server) => Promise<Answer>,
): Promise<{ answers: [Answer, ...Answer[]]; servers: Finding }> {
  const settled = await Promise.allSettled(servers.map(ask))
  const answers = settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  const [first, ...others] = answers
  if (first === undefined) throw settled.map(each => (each as PromiseRejectedResult).reason)[0]
  const silent = servers.filter((_, i) => settled[i]?.status === 'rejected').map(nameOf)
  return { answers: [first, ...others], servers: serversFinding(servers.length, silent) }
}

function serversFinding(all: number, silent: readonly string[]): Finding {
  if (silent.length === 0) return ok('servers', `each server of the URL answers (${all})`)
  const what = `${silent.join(' and ')} did not answer`
  const why = 'fewer servers may fail from now on until no lease can be acquired or renewed'
  return warning('servers', what, why, 'start the server, or correct its address')
}
