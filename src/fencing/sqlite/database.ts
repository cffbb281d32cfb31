/** What a fence needs from a `DatabaseSync` of node:sqlite, or of a `Database` of better-sqlite3. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

export interface SqliteStatement {
  run(...parameters: (string | number | bigint | null)[]): { readonly changes: number | bigint }
  all(...parameters: (string | number | bigint)[]): unknown[]
}
