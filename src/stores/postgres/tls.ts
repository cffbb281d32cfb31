import { isIP } from 'node:net'
import { invalid, show } from '../../check.ts'
import { readPemFile } from '../link/pem.ts'

/** What pg and postgres.js hand on to `tls.connect`; `false`: no TLS. */
export type Tls = false | Readonly<Record<string, unknown>>

/** The options of a URL about TLS that name files, and what `tls.connect` calls them. */
const FILES = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

/**
 * Takes the options about TLS out of a URL. The clients differ in what these mean: with postgres.js `sslmode=require`
 * accepts every certificate. Here a certificate is verified, with the name of the host, unless `no-verify` says otherwise.
 * Throws `INVALID_ARGUMENT`.
 */
export function takeTls(url: URL): Tls {
  const options = url.searchParams
  const files = Object.entries(FILES).filter(([name]) => options.has(name))
  const given = options.get('sslmode')
  const isSocket = /^%2f/i.test(url.hostname) // which has no TLS: libpq ignores the variable there
  const [mode, source] =
    given !== null || files.length > 0
      ? [given ?? 'verify-full', 'sslmode in the URL of the PostgreSQL store']
      : [(!isSocket && process.env.PGSSLMODE) || 'disable', 'the environment variable PGSSLMODE']
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const tls = {
    rejectUnauthorized: verifies(mode, source),
    // Else tls.connect compares the certificate of an address with "localhost".
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...Object.fromEntries(
      files.map(([name, option]) => [option, readPemFile(name, options.get(name) ?? '', 'PostgreSQL')]),
    ),
  }
  if (mode === 'disable' && files.length > 0)
    throw invalid(`${files[0]?.[0]} and sslmode=disable are in one URL of the PostgreSQL store: leave out one of them`)
  for (const name of ['sslmode', ...Object.keys(FILES)]) options.delete(name)
  return mode !== 'disable' && tls
}

function verifies(mode: string, source: string): boolean {
  const known = 'verify-full (or require or verify-ca, which mean the same), no-verify or disable'
  if (mode === 'prefer' || mode === 'allow')
    throw invalid(`${source} is ${mode}, which goes on without TLS if somebody on the way wants that: write ${known}`)
  if (!['verify-full', 'verify-ca', 'require', 'no-verify', 'disable'].includes(mode))
    throw invalid(`${source} is ${show(mode)}: write ${known}`)
  return mode !== 'no-verify'
}
