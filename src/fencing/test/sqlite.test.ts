import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { failureOf } from '../../../test/support.ts'
import { fenceSql, type SqliteDatabase, sqliteFence } from '../sqlite/index.ts'
import { holder, stale } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-fence-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
let path: string
let database: DatabaseSync

beforeEach(() => {
  files += 1
  path = join(folder, `${files}.db`)
  database = new DatabaseSync(path)
  sqliteFence(database).install()
  sqliteFence(database).install()
  database.exec('create table entry (token integer not null)')
})

const insert = (): void => database.exec('insert into entry values (1)')
const entries = (): number => Number(database.prepare('select count(*) as n from entry').get()?.n)
const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })

describe('a transaction', () => {
  test('is committed, and its work never begins if a newer holder was seen', () => {
    const fence = sqliteFence(database)
    const result = fence.transaction(holder('a', 7), () => {
      insert()
      return 'done'
    })
    expect(result).toBe('done')
    const never = vi.fn<() => void>()
    expect(() => fence.transaction(holder('a', 6), never)).toThrow(stale(6n, 7n))
    expect(never).not.toHaveBeenCalled()
    fence.transaction(holder('a', 7), insert)
    fence.touch(holder('a', 2n ** 62n + 1n))
    expect(() => fence.transaction(holder('a', 2n ** 62n), insert)).toThrow(stale(2n ** 62n, 2n ** 62n + 1n))
    fence.transaction(holder('b', 1), insert)
    expect(entries()).toBe(3)
  })

  test('is rolled back when its work fails, or is asynchronous', () => {
    const fence = sqliteFence(database)
    const error = new Error('mine')
    const failing = (): void => {
      insert()
      throw error
    }
    expect(() => fence.transaction(holder('a', 1), failing)).toThrow(error)
    expect(() => fence.transaction(holder('a', 1), async () => insert())).toThrow(refused)
    expect(entries()).toBe(0)
    expect(database.isTransaction).toBe(false)
  })

  test.each([
    ['commit; begin', 1],
    ['rollback', 0],
    ['insert or rollback into entry values (null)', 0],
  ])('whose work ends it by %j and goes on is an error', (statement, before) => {
    const fence = sqliteFence(database)
    const work = (): void => {
      insert()
      try {
        database.exec(statement)
      } catch {} // as a work that ignores a duplicate
      insert()
    }
    expect(() => fence.transaction(holder('a', 1), work)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('before its work ended') }),
    )
    expect(entries()).toBe(statement.includes('begin') ? before : 1)
    expect(database.isTransaction).toBe(false)
    fence.transaction(holder('a', 1), insert)
  })

  test('rejects with the unchanged error of a commit that fails because of the data', () => {
    database.exec(`pragma foreign_keys = on; create table parent (id integer primary key);
      create table child (parent integer references parent deferrable initially deferred)`)
    const fence = sqliteFence(database)
    const orphan = (): void => database.exec('insert into child values (1)')
    expect(() => fence.transaction(holder('a', 1), orphan)).toThrow(/FOREIGN KEY/)
    expect(database.isTransaction).toBe(false)
  })

  test('inside another is refused, and the error names check', () => {
    const fence = sqliteFence(database)
    expect(() => fence.check(holder('a', 5))).toThrow(refused)
    database.exec('begin')
    fence.check(holder('a', 5))
    expect(() => fence.transaction(holder('a', 5), insert)).toThrow(refused)
    expect(() => fence.touch(holder('a', 6))).toThrow(refused) // a rollback would undo it
    expect(() => fence.check(holder('a', 4))).toThrow(stale(4n, 5n))
    database.exec('rollback')
    fence.touch(holder('a', 4)) // a mark that was rolled back does not count
  })
})

test('a file locked by another connection is reported, and marks of other fences wait for it', async () => {
  const other = new DatabaseSync(path)
  const fence = sqliteFence(database)
  other.exec('begin immediate')
  const locked = expect.objectContaining({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/timeout/) })
  expect(() => fence.touch(holder('a', 1))).toThrow(locked)
  expect(() => fence.transaction(holder('a', 1), insert)).toThrow(locked)
  const raising = fence.marks.raise('a', { epoch: 0, token: 5n })
  const abort = new AbortController()
  const aborted = failureOf(fence.marks.raise('a', { epoch: 0, token: 9n }, abort.signal))
  abort.abort(new Error('enough'))
  expect(await aborted).toBe(abort.signal.reason)
  other.exec('commit')
  await raising
  database.exec('begin')
  const apart = fence.marks.raise('a', { epoch: 0, token: 6n })
  await new Promise(setImmediate)
  database.exec('rollback')
  await apart
  await expect(fence.marks.raise('a', { epoch: 0, token: 5n })).rejects.toEqual(stale(5n, 6n))
  other.close()
})

test('marks can be listed, advanced to another epoch and pruned, and are kept in the file', async () => {
  sqliteFence(database, { resource: 'moved' }).touch(holder('any', 900))
  database.close()
  database = new DatabaseSync(path)
  const fence = sqliteFence(database, { resource: 'moved' })
  expect(() => fence.touch(holder('any', 899))).toThrow(stale(899n, 900n))
  expect(await fence.marks.advance('moved')).toBe(1)
  expect(await fence.marks.advance('nobody')).toBeUndefined()
  expect(() => fence.touch(holder('any', 901))).toThrow(stale(901n, 0n))
  const next = sqliteFence(database, { resource: 'moved', epoch: 1 })
  next.touch(holder('any', 3))
  const [mark] = await next.marks.list('mov')
  expect(mark).toEqual({ resource: 'moved', epoch: 1, token: 3n, raisedAt: expect.any(Number) })
  expect(Math.abs((mark?.raisedAt ?? 0) - Date.now())).toBeLessThan(60_000)
  expect(await next.marks.prune(3_600_000)).toBe(0)
  database.exec('update holdfast_fence set raised_at = raised_at - 3700000')
  expect(await next.marks.prune(3_600_000, 'x')).toBe(0)
  expect(await next.marks.prune(3_600_000, 'moved')).toBe(1)
})

test('a database that returns small integers as numbers, such as better-sqlite3, works too', async () => {
  // What better-sqlite3 has and node:sqlite has not: `inTransaction`, and codes by name. No ?1, nor has Node < 24.7.
  const like: SqliteDatabase & { readonly inTransaction: boolean } = {
    exec(sql) {
      try {
        return database.exec(sql)
      } catch (error) {
        throw Object.assign(new Error((error as Error).message), { code: 'SQLITE_BUSY' })
      }
    },
    prepare(sql) {
      if (/\?\d/.test(sql)) throw new RangeError('Too many parameter values were provided')
      return database.prepare(sql) as ReturnType<SqliteDatabase['prepare']>
    },
    get inTransaction() {
      return database.isTransaction
    },
  }
  const fence = sqliteFence(like)
  fence.transaction(holder('a', 5), insert)
  expect(() => fence.transaction(holder('a', 4), insert)).toThrow(stale(4n, 5n))
  const other = new DatabaseSync(path)
  other.exec('begin immediate')
  expect(() => fence.transaction(holder('a', 5), insert)).toThrow(
    expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true }),
  )
  other.close()
  expect(await fence.marks.list('a')).toMatchObject([{ resource: 'a', token: 5n }])
  expect(await fence.marks.list('')).toHaveLength(1)
  expect(await fence.marks.prune(0, 'b')).toBe(0)
})

test('a database that does not report its transactions, as in Node 22.13, is guarded too', async () => {
  const like: SqliteDatabase = {
    exec: sql => database.exec(sql),
    prepare: sql => database.prepare(sql) as ReturnType<SqliteDatabase['prepare']>,
  }
  const fence = sqliteFence(like)
  expect(() => fence.check(holder('a', 5))).toThrow(refused)
  expect(database.isTransaction).toBe(false)
  expect(await fence.marks.list()).toEqual([])
  database.exec('begin')
  insert()
  fence.check(holder('a', 5))
  expect(() => fence.touch(holder('a', 6))).toThrow(refused) // a rollback would undo it
  expect(() => fence.transaction(holder('a', 6), insert)).toThrow(refused)
  expect(database.isTransaction).toBe(true)
  const apart = fence.marks.raise('b', { epoch: 0, token: 7n })
  await new Promise(setImmediate)
  database.exec('rollback')
  await apart
  expect(await fence.marks.list()).toMatchObject([{ resource: 'b', token: 7n }])
  fence.touch(holder('a', 4))
  fence.transaction(holder('a', 4), insert)
  expect(() => fence.transaction(holder('a', 3), insert)).toThrow(stale(3n, 4n))
  expect(database.isTransaction).toBe(false)
  expect(entries()).toBe(1)
})

test('a database that returns rows as lists works too', async () => {
  const fence = sqliteFence(new DatabaseSync(path, { returnArrays: true }))
  fence.touch(holder('a', 7))
  expect(() => fence.touch(holder('a', 6))).toThrow(stale(6n, 7n))
  expect(await fence.marks.list()).toMatchObject([{ resource: 'a', epoch: 0, token: 7n }])
  expect(await fence.marks.advance('a')).toBe(1)
})

test('missing tables and invalid arguments are refused with what to do', () => {
  const missing = sqliteFence(database, { table: 'no "such' })
  expect(() => missing.touch(holder('a', 1))).toThrow(/the table "no ""such" is missing.*fence\.install\(\)/)
  expect(fenceSql({ table: 'no "such' })).toContain('"no ""such"')
  missing.install()
  missing.touch(holder('a', 1))
  database.exec('create table other (resource text, token integer)')
  expect(() => sqliteFence(database, { table: 'other' }).touch(holder('a', 1))).toThrow(
    expect.objectContaining({ code: 'FORMAT_MISMATCH', message: expect.stringContaining('has other columns') }),
  )
  const fence = sqliteFence(database)
  for (const use of [
    () => sqliteFence({} as never),
    () => sqliteFence(database, { tabel: 'x' } as never),
    () => sqliteFence(database, { table: '' }),
    () => fence.transaction(holder('a', 1), 'insert' as never),
    () => fence.touch({ name: 'a', token: 5 } as never),
    () => fence.touch({ name: '', token: 5n }),
  ])
    expect(use).toThrow(refused)
})
