import { warn } from '../../contract/warnings.ts'

/** Warns once for each host if a password is sent without TLS to a host other than this machine. */
export function warnOfClearPassword(kind: string, host: string): void {
  if (isLoopback(host)) return
  const message = `the password for ${kind} goes to ${host} without TLS, so anybody on the network path can read it: use TLS`
  warn('HOLDFAST_PASSWORD_IN_CLEAR', message, host)
}

/** Is this host the local machine? A Unix socket, given by its path, counts too. */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?|)$|^(\/|%2f)/i.test(host)
}
