import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Usage } from '../failure.ts'

/** The destinations to which a command exports its metrics. */
export interface MetricsOptions {
  /** The address on which the server listens. */
  readonly address: Address | undefined
  /** The absolute path of the metrics file. */
  readonly file: string | undefined
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** The options as `parseArgs` takes them. */
export const METRICS_OPTIONS: {
  readonly 'metrics-port': { readonly type: 'string' }
  readonly 'metrics-file': { readonly type: 'string' }
} = { 'metrics-port': { type: 'string' }, 'metrics-file': { type: 'string' } }

/** Parses both options. Returns `undefined` if neither is given. Throws `Usage`. */
export function metricsOptions(
  values: Partial<Record<keyof typeof METRICS_OPTIONS, string>>,
): MetricsOptions | undefined {
  const { 'metrics-port': port, 'metrics-file': file } = values
  if (port === undefined && file === undefined) return undefined
  return {
    address: port === undefined ? undefined : addressOf(port),
    file: file === undefined ? undefined : writablePath(file),
  }
}

/** Parses an address such as `9464`, `0.0.0.0:9464` or `[::1]:9464`. */
function addressOf(text: string): Address {
  const [, brackets, name, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  if (port >= 1 && port <= 65_535) return { host: brackets ?? name ?? '127.0.0.1', port }
  throw new Usage(
    `--metrics-port ${text || "''"} is not a port: expected 1 to 65535, or HOST:PORT such as 0.0.0.0:9464`,
  )
}

/** Checks the path before the command runs, because a later failure would lose the metrics. */
function writablePath(text: string): string {
  if (!text.endsWith('.prom'))
    throw new Usage(`--metrics-file ${text || "''"} must end in .prom: the textfile collector reads nothing else`)
  const path = resolve(text)
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const why = missing ? 'does not exist: create it first' : 'is not writable'
    throw new Usage(`--metrics-file ${text}: the folder ${folder} ${why}`)
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Usage(`--metrics-file ${text} is a folder: expected the path of a file in it`)
  return path
}
