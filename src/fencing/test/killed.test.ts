import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { sqliteFence } from '../sqlite/index.ts'
import { holder, stale } from './support.ts'
import { Child } from './web/child.ts'

test.each([
  ['delete', ''],
  ['wal', '-wal'],
])(
  'a process that is killed in the middle of a transaction of SQLite (journal: %s) leaves neither what it wrote nor its mark',
  async (mode, suffix) => {
    const path = join(newFolder('killed'), 'ledger.db')
    const database = new DatabaseSync(path)
    database.exec(`pragma journal_mode = ${mode}; create table entry (token integer not null, data blob)`)
    const fence = sqliteFence(database)
    fence.install()
    const insert = database.prepare('insert into entry (token) values (?)')
    const book = (token: number): unknown => fence.transaction(holder('ledger', token), () => insert.run(token))
    book(5)

    const child = new Child(new URL('half-done.ts', import.meta.url), path, '6')
    expect(await child.line()).toBe('half')
    expect(statSync(path + suffix).size).toBeGreaterThan(1_000_000)
    expect(() => book(7)).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true }))
    await child[Symbol.asyncDispose]()

    book(5) // the mark of 6 was never committed
    expect(await fence.marks.list()).toMatchObject([{ resource: 'ledger', token: 5n }])
    book(7)
    expect(() => book(6)).toThrow(stale(6n, 7n))
    const tokens = database.prepare('select token from entry order by rowid').all()
    expect(tokens.map(({ token }) => token)).toEqual([5, 5, 7])
    database.close()
  },
)
