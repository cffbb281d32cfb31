import { readFileSync } from 'node:fs'
import { invalid } from '../../contract/check.ts'

/** The TLS options of a URL: the paths of PEM files. */
export const pemFiles = ['ca', 'cert', 'key'] as const

/** Reads the files that the options of a URL name, such as `ca=/etc/ssl/own.pem`. */
export function readPem(options: URLSearchParams, engine: string): { [name in (typeof pemFiles)[number]]?: Buffer } {
  const given = pemFiles.filter(name => options.has(name))
  return Object.fromEntries(given.map(name => [name, readPemFile(name, options.get(name) ?? '', engine)]))
}

export function readPemFile(name: string, path: string, engine: string): Buffer {
  if (path.includes('-----BEGIN'))
    throw invalid(
      `${name} in the URL of the ${engine} store is a certificate or key: give the path of a file, not its text`,
    )
  try {
    return readFileSync(path)
  } catch (error) {
    throw invalid(`the file of ${name} in the URL of the ${engine} store cannot be read: ${(error as Error).message}`)
  }
}
