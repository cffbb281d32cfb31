import { warn } from '../../contract/warnings.ts'

/** Warns once per host if a password goes without TLS to a host that is not this machine. */
export function warnOfClearPassword(kind: string, host: string): void {
  if (isLoopback(host)) return
  const message = `the password for ${kind} goes to ${host} without TLS, so anybody on the network path can read it: use TLS`
  warn('HOLDFAST_PASSWORD_IN_CLEAR', message, host)
}

/** A Unix socket, given by its path, counts too. */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?|)$|^(\/|%2f)/i.test(host)
}
