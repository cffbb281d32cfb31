import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Usage } from '../failure.ts'

/** Where a command shows what happens to its lease. */
export interface MetricsOptions {
  readonly at: Address | undefined
  /** An absolute path. */
  readonly file: string | undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** For `parseArgs`. */
export const METRICS_OPTIONS: {
  readonly 'metrics-port': { readonly type: 'string' }
  readonly 'metrics-file': { readonly type: 'string' }
} = { 'metrics-port': { type: 'string' }, 'metrics-file': { type: 'string' } }

/** Reads both; `undefined` if neither is given. Throws `Usage`. */
export function metricsOptions(
  values: Partial<Record<keyof typeof METRICS_OPTIONS, string>>,
): MetricsOptions | undefined {
  const { 'metrics-port': port, 'metrics-file': file } = values
  if (port === undefined && file === undefined) return undefined
  return { at: port === undefined ? undefined : address(port), file: file === undefined ? undefined : writable(file) }
}

/** `9464`, `0.0.0.0:9464`, `[::1]:9464`. */
function address(text: string): Address {
  const [, brackets, name, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  if (port >= 1 && port <= 65_535) return { host: brackets ?? name ?? '127.0.0.1', port }
  throw new Usage(`--metrics-port ${text || "''"} is no port: expected 1 to 65535, or HOST:PORT such as 0.0.0.0:9464`)
}

/** Whoever finds out after the command ran has lost what was measured. */
function writable(text: string): string {
  if (!text.endsWith('.prom'))
    throw new Usage(`--metrics-file ${text || "''"} must end in .prom: the textfile collector reads nothing else`)
  const path = resolve(text)
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const why = missing ? 'does not exist: make it first' : 'cannot be written to'
    throw new Usage(`--metrics-file ${text}: the folder ${folder} ${why}`)
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Usage(`--metrics-file ${text} is a folder: expected the path of a file in it`)
  return path
}
