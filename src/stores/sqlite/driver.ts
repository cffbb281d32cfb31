import type { DatabaseSync } from 'node:sqlite'
import { LeaseError } from '../../contract/errors.ts'

/**
 * Loads Node's own SQLite. This happens when the first file is opened, so that an import of this package costs nothing.
 * Node 22 and 23 emit an `ExperimentalWarning` while it loads. Only that warning is suppressed: `process.emitWarning` is
 * restored before any other code runs.
 */
export function loadDriver(): typeof DatabaseSync {
  // oxlint-disable-next-line typescript/unbound-method -- kept to be restored unchanged
  const emitWarning = process.emitWarning
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (!String(warning).startsWith('SQLite is an experimental feature'))
      Reflect.apply(emitWarning, process, [warning, ...rest])
  }
  try {
    const driver = process.getBuiltinModule?.('node:sqlite')
    if (driver) return driver.DatabaseSync
  } finally {
    process.emitWarning = emitWarning
  }
  const node = `Node ${process.versions.node}`
  throw new LeaseError('DRIVER_MISSING', `${node} has no node:sqlite: use Node 22.13 or newer, without --no-sqlite`)
}
