import { DatabaseSync } from 'node:sqlite'

/** Locks a SQLite file for writing and returns how to unlock it. Throws if it stays locked for `timeout` ms. */
export function holdFile(path: string, timeout = 5_000): () => void {
  const database = new DatabaseSync(path)
  try {
    database.exec(`pragma busy_timeout = ${timeout}; begin immediate`)
  } catch (error) {
    database.close()
    throw error
  }
  return () => database.close()
}
