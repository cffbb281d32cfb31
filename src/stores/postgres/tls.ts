import { isIP } from 'node:net'
import { invalid, show } from '../../contract/check.ts'
import { withoutBrackets } from '../url/options.ts'
import { readPemFile } from '../url/pem.ts'

/** The TLS options that pg and postgres.js pass to `tls.connect`. `false`: no TLS. */
export type Tls = false | Readonly<Record<string, unknown>>

/** The TLS options of a URL whose values are files, and their names in `tls.connect`. */
const FILES = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

/**
 * Removes the TLS options from a URL, and returns what they mean. Their meaning differs between the clients: with
 * postgres.js `sslmode=require` accepts every certificate. Here the certificate and the host name are verified, unless
 * `sslmode` is `no-verify`. Throws `INVALID_ARGUMENT`.
 */
export function takeTls(url: URL): Tls {
  const options = url.searchParams
  const files = Object.entries(FILES).filter(([name]) => options.has(name))
  const given = options.get('sslmode')
  const isSocket = /^%2f/i.test(url.hostname) // a Unix socket has no TLS: libpq ignores the variable there
  const [mode, source] =
    given !== null || files.length > 0
      ? [given ?? 'verify-full', 'sslmode in the URL of the PostgreSQL store']
      : [(!isSocket && process.env.PGSSLMODE) || 'disable', 'the environment variable PGSSLMODE']
  const host = withoutBrackets(url.hostname)
  const tls = {
    rejectUnauthorized: verifies(mode, source),
    // Without a host, tls.connect compares the certificate of an IP address with "localhost".
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...Object.fromEntries(
      files.map(([name, option]) => [option, readPemFile(name, options.get(name) ?? '', 'PostgreSQL')]),
    ),
  }
  if (mode === 'disable' && files.length > 0)
    throw invalid(`the URL of the PostgreSQL store has ${files[0]?.[0]} and sslmode=disable: remove one of them`)
  for (const name of ['sslmode', ...Object.keys(FILES)]) options.delete(name)
  return mode !== 'disable' && tls
}

function verifies(mode: string, source: string): boolean {
  const known = 'verify-full (or require or verify-ca, which mean the same), no-verify or disable'
  if (mode === 'prefer' || mode === 'allow')
    throw invalid(`${source} is ${mode}, which an attacker can downgrade to no TLS: write ${known}`)
  if (!['verify-full', 'verify-ca', 'require', 'no-verify', 'disable'].includes(mode))
    throw invalid(`${source} is ${show(mode)}: write ${known}`)
  return mode !== 'no-verify'
}
