import { DatabaseSync } from 'node:sqlite'

/** Locks a SQLite file against everybody; answers how to let go. */
export function openExclusively(path: string): () => void {
  const database = new DatabaseSync(path)
  database.exec('pragma busy_timeout = 5000; begin immediate')
  return () => database.close()
}
