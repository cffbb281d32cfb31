import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { KeptMarks } from '../fencing/fence.ts'
import { Usage } from './failure.ts'

/** The marks that a fence keeps somewhere, and how to let go of the place. */
export interface OpenMarks {
  readonly marks: KeptMarks
  close(): unknown
}

const SHAPES =
  "postgres://host/database, redis://host:6379, sqlite:/path/of/the/application's.db, or file:///folder/of/the/files"

/** Opens the marks that a URL names. Throws `Usage` for one that cannot be right, `DRIVER_MISSING`. */
export async function openMarks(url: string | undefined): Promise<OpenMarks> {
  if (url === undefined) throw new Usage(`--url must say where the fenced data and its marks are: ${SHAPES}`)
  if (/^postgres(ql)?:/i.test(url)) return inPostgres(url)
  if (/^rediss?:/i.test(url)) return inRedis(url)
  if (/^sqlite:/i.test(url)) return inSqlite(url.slice('sqlite:'.length))
  if (/^file:/i.test(url)) return inFiles(url)
  if (/^(https?|s3):/i.test(url))
    throw new Usage(
      'marks of objects are in the objects, for which this has no client: use fence.marks of holdfast/fencing/objects',
    )
  const [scheme] = /^[a-z][a-z0-9+.-]*:/i.exec(url) ?? ['this']
  throw new Usage(`no marks are kept at a URL of ${scheme}: expected ${SHAPES}`)
}

async function inPostgres(url: string): Promise<OpenMarks> {
  const [{ clientAt }, { postgresFence }] = await Promise.all([
    import('../stores/postgres/open.ts'),
    import('../fencing/postgres/index.ts'),
  ])
  const { client, place } = clientAt(url)
  // Not awaited: a client whose server stands still would never end.
  return { marks: postgresFence(client, place).marks, close: () => void (client as { end?(): unknown }).end?.() }
}

async function inRedis(url: string): Promise<OpenMarks> {
  const [{ clientAt }, { redisFence }] = await Promise.all([
    import('../stores/redis/open.ts'),
    import('../fencing/redis/index.ts'),
  ])
  const { client, prefix } = clientAt(url)
  const fence = redisFence(client, { prefix })
  return { marks: fence.marks, close: () => fence.close() }
}

async function inSqlite(path: string): Promise<OpenMarks> {
  if (!existsSync(path)) throw new Usage(`there is no file ${JSON.stringify(path)}: give that of the fenced data`)
  const [{ loadDriver }, { sqliteFence }] = await Promise.all([
    import('../stores/sqlite/driver.ts'),
    import('../fencing/sqlite/index.ts'),
  ])
  const database = new (loadDriver())(path)
  return { marks: sqliteFence(database).marks, close: () => database.close() }
}

async function inFiles(url: string): Promise<OpenMarks> {
  const { fileMarks } = await import('../fencing/files/index.ts')
  return { marks: fileMarks(folderOf(url)), close() {} }
}

/** A URL has percent signs and begins at the root; anything else after `file:` is a path. */
function folderOf(url: string): string {
  const path = url.slice('file:'.length)
  if (!path.startsWith('/')) return path
  try {
    return fileURLToPath(url)
  } catch (error) {
    throw new Usage(`${url} names no folder of this machine, such as file:///srv/exports: ${(error as Error).message}`)
  }
}
