import { warn } from '../../warnings.ts'

/** Warns, once per host, of a password that goes without TLS to a host that is not this machine. */
export function warnOfClearPassword(kind: string, host: string): void {
  if (isLoopback(host)) return
  const message = `the password for ${kind} goes to ${host} without TLS, so that anyone on the way may read it: use TLS`
  warn('HOLDFAST_PASSWORD_IN_CLEAR', message, host)
}

/** Also a Unix socket, by its path. */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?|)$|^(\/|%2f)/i.test(host)
}
