import { createConnection, createPool, type Pool } from 'mysql2/promise'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { failureOf } from '../../../test/support.ts'
import { openMarks } from '../../marks.ts'
import { mysqlFence } from '../mysql/index.ts'
import { holder, stale } from './support.ts'

let server: MariaDbServer
let pool: Pool

beforeAll(async () => {
  server = await startMariaDb()
  pool = createPool(server.url())
  await mysqlFence(pool).install()
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

test.each([{ autocommit: 0 }, { completion_type: 'CHAIN' }, { autocommit: 0, completion_type: 'CHAIN' }])(
  'over a pool whose sessions have %o marks are kept, and leave no transaction open',
  async config => {
    const loose = await startMariaDb({ config })
    onTestFinished(() => loose.stop())
    const without = createPool({ uri: loose.url(), connectionLimit: 1 })
    const fence = mysqlFence(without)
    await fence.install()
    await fence.touch(holder('kept', 6))
    await expect(fence.touch(holder('kept', 5))).rejects.toEqual(stale(5n, 6n))
    expect(await fence.marks.list()).toMatchObject([{ token: 6n }])
    for (const end of ['done', 'again']) expect(await fence.transaction(holder('kept', 7), async () => end)).toBe(end)
    expect(await fence.marks.advance('kept')).toBe(1)
    await without.end()
    const other = createPool({ uri: loose.url() })
    expect(await mysqlFence(other).marks.list()).toMatchObject([{ epoch: 1, token: 0n }])
    await other.end()
  },
)

test('a mark that a transaction of the caller would undo is not reported as kept', async () => {
  const connection = await createConnection(server.url())
  onTestFinished(() => connection.destroy())
  const fence = mysqlFence(connection)
  await connection.beginTransaction()
  expect(await failureOf(fence.touch(holder('undone', 5)))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/in a transaction/),
  })
  await connection.rollback()
  await fence.touch(holder('undone', 4))
})

test('a transaction that a deadlock or an old snapshot ended is to be repeated, and says so', async () => {
  const fence = mysqlFence(pool)
  const [one, two] = await Promise.all([1, 2].map(() => createConnection(server.url())))
  if (!one || !two) throw new Error('not connected')
  onTestFinished(() => {
    for (const connection of [one, two]) connection.destroy()
  })
  const repeat = { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/repeat/) }
  for (const connection of [one, two]) await connection.beginTransaction()
  await fence.check(holder('first', 5), one)
  await fence.check(holder('second', 5), two)
  const outcomes = await Promise.allSettled([
    fence.check(holder('second', 5), one),
    fence.check(holder('first', 5), two),
  ])
  expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: repeat })
  for (const connection of [one, two]) await connection.rollback()
  await one.query('set innodb_snapshot_isolation = on')
  await one.beginTransaction()
  await one.query('select * from holdfast_fence')
  await fence.touch(holder('first', 6))
  expect(await failureOf(fence.check(holder('first', 6), one))).toMatchObject(repeat)
})

test.each([{ typeCast: () => 'x' }, { nestTables: true }, { rowsAsArray: true }])(
  'a pool that changes what rows look like is understood: %o',
  async options => {
    const changed = createPool({ uri: server.url(), ...options })
    const fence = mysqlFence(changed)
    const resource = `changed by ${Object.keys(options)}`
    await fence.touch(holder(resource, 6))
    await expect(fence.touch(holder(resource, 5))).rejects.toEqual(stale(5n, 6n))
    expect(await fence.marks.list(resource)).toMatchObject([{ resource, epoch: 0, token: 6n }])
    expect(await fence.marks.advance(resource)).toBe(1)
    await changed.end()
  },
)

test('two who advance a mark at once each get an epoch of their own', async () => {
  const fence = mysqlFence(pool)
  await fence.touch(holder('advanced', 5))
  const epochs = await Promise.all(Array.from({ length: 20 }, () => fence.marks.advance('advanced')))
  expect(new Set(epochs).size).toBe(20)
})

test('marks are listed, advanced and pruned', async () => {
  const largest = 2n ** 63n - 1n
  await using marks = await openMarks(`${server.url()}?table=holdfast_fence`)
  await marks.raise('list/a', { epoch: 0, token: largest })
  await marks.raise('list/b ', { epoch: 2, token: 0n })
  expect(await marks.list('list/')).toMatchObject([
    { resource: 'list/a', epoch: 0, token: largest },
    { resource: 'list/b ', epoch: 2, token: 0n },
  ])
  expect(await failureOf(marks.raise('list/a', { epoch: 0, token: 1n }))).toMatchObject({ highest: largest })
  expect(await marks.advance('list/a')).toBe(1)
  expect(await marks.advance('list/none')).toBeUndefined()
  expect(await failureOf(marks.raise('list/a', { epoch: 0, token: largest }))).toMatchObject({ code: 'STALE_TOKEN' })
  expect(await failureOf(marks.raise('list/b ', { epoch: 1, token: 7n }))).toMatchObject({ code: 'STALE_TOKEN' })
  await marks.raise('list/a', { epoch: 1, token: 1n })
  expect(await marks.prune(60_000, 'list/')).toBe(0)
  expect(await marks.prune(0, 'list/')).toBe(2)
})
