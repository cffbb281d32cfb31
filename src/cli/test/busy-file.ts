import { DatabaseSync } from 'node:sqlite'

/** Keeps everybody else from writing to a SQLite file; answers how to let go. Throws if somebody does so for 5 s. */
export function holdFile(path: string, patience = 5_000): () => void {
  const database = new DatabaseSync(path)
  try {
    database.exec(`pragma busy_timeout = ${patience}; begin immediate`)
  } catch (error) {
    database.close()
    throw error
  }
  return () => database.close()
}
