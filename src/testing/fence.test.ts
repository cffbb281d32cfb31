import { expect, expectTypeOf, test, vi } from 'vitest'
import type { PgPool, PostgresFence, TransactionOf } from '../fencing/postgres/index.ts'
import { type TestFence, testFence, testLocks } from './index.ts'

const older = { name: 'ledger', token: 5n }
const newer = { name: 'ledger', token: 6n }

test('work runs with the transaction of the options, and its result is returned', async () => {
  const client = { query: async (_text: string) => 1 }
  const fence = testFence({ transaction: client })
  expect(await fence.transaction(older, db => db.query('insert'))).toBe(1)
  expect(await fence.transaction(older, async () => 2)).toBe(2)
})

test('arguments in another order are type errors, and say which order is right', async () => {
  const fence = testFence()
  const work = vi.fn<() => Promise<number>>(async () => 1)
  expectTypeOf(fence.transaction(older, undefined, work)).resolves.toEqualTypeOf<number>()
  const right = /the work must be a function and come last: fence.transaction\(lease, options, work\)/
  // @ts-expect-error The options come before the work.
  await expect(fence.transaction(older, work, {})).rejects.toThrow(right)
  // @ts-expect-error There is no work.
  await expect(fence.transaction(older, {})).rejects.toThrow(right)
  // @ts-expect-error The lease comes first.
  await expect(fence.check(undefined, older)).rejects.toThrow('a fence needs a lease or its { name, token }')
  // @ts-expect-error A signal is an option.
  await expect(fence.touch(older, new AbortController().signal)).rejects.toThrow('touch has no option')
  // @ts-expect-error F11: a plain value may be a forgotten `return`; at run time it is the result
  expect(await fence.transaction(older, () => 2)).toBe(2)
  expect(work).toHaveBeenCalledTimes(1)
})

test('a lower token is refused with both tokens, and its work does not run', async () => {
  const fence = testFence()
  await fence.transaction(newer, async () => {})
  const refused = fence.transaction(older, () => expect.fail('it ran'))
  await expect(refused).rejects.toMatchObject({ code: 'STALE_TOKEN', token: 5n, highest: 6n })
  await expect(fence.check(older, undefined)).rejects.toMatchObject({ code: 'STALE_TOKEN' })
  await expect(fence.touch(older)).rejects.toMatchObject({ code: 'STALE_TOKEN' })
})

test('a check refuses what is not the transaction', async () => {
  const client = {}
  const fence = testFence({ transaction: client })
  for (const other of [undefined, {}])
    await expect(fence.check(older, other)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await fence.check(older, client)
  await expect(testFence().check(older, client)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('work that throws leaves the mark as it was', async () => {
  const fence = testFence()
  const failed = fence.transaction(newer, () => Promise.reject(new Error('disk full')))
  await expect(failed).rejects.toThrow('disk full')
  expect(await fence.marks.list()).toEqual([])
  await fence.transaction(older, async () => {})
  await expect(fence.transaction(newer, () => Promise.reject(new Error('disk full')))).rejects.toThrow('disk full')
  expect(await fence.marks.list()).toMatchObject([{ resource: 'ledger', epoch: 0, token: 5n }])
})

test('a transaction that is rolled back leaves the mark that a newer holder raised meanwhile', async () => {
  const fence = testFence()
  const failed = fence.transaction(older, async () => {
    await fence.check(newer, undefined)
    throw new Error('disk full')
  })
  await expect(failed).rejects.toThrow('disk full')
  expect(await fence.marks.list()).toMatchObject([{ token: 6n }])
  await expect(fence.touch(older)).rejects.toMatchObject({ code: 'STALE_TOKEN' })
})

test('transactions of one resource run one after the other', async () => {
  const fence = testFence()
  const done: string[] = []
  const first = Promise.withResolvers<void>()
  const transactions = [
    fence.transaction(older, async () => {
      await first.promise
      done.push('older')
    }),
    fence.transaction(newer, async () => done.push('newer')),
    fence.transaction({ name: 'other', token: 1n }, async () => done.push('other')),
  ]
  await transactions[2]
  first.resolve()
  await Promise.all(transactions)
  expect(done).toEqual(['other', 'older', 'newer'])
})

test('transactions of permits of different slots and of readers overlap, and a writer waits for all of them', async () => {
  const fence = testFence()
  const order: string[] = []
  const gate = Promise.withResolvers<void>()
  const shared = [
    { name: 'shared', token: 1n, limit: 3, slots: [0] },
    { name: 'shared', token: 2n, limit: 3, slots: [1] },
    { name: 'shared', token: 3n, limit: 2 ** 31 - 1, slots: [0] },
    { name: 'shared', token: 2n, limit: 2 ** 31 - 1, slots: [16] },
  ].map((holder, index) =>
    fence.transaction(holder, async () => {
      order.push(`in ${index}`)
      await gate.promise
      order.push(`out ${index}`)
    }),
  )
  const writing = fence.transaction({ name: 'shared', token: 4n }, async () => order.push('writer'))
  const next = fence.transaction({ name: 'shared', token: 5n, limit: 3, slots: [0] }, async () => order.push('next'))
  await vi.waitFor(() => expect(order).toEqual(['in 0', 'in 1', 'in 2', 'in 3']))
  gate.resolve()
  await Promise.all([...shared, writing, next])
  expect(order.slice(4)).toEqual(['out 0', 'out 1', 'out 2', 'out 3', 'writer', 'next'])
  await expect(fence.touch({ name: 'shared', token: 3n })).rejects.toMatchObject({ highest: 5n })
})

test('a lease that is lost during the work is refused after it', async () => {
  const locks = testLocks()
  const fence = testFence()
  const lease = await locks.acquire('ledger')
  await expect(fence.transaction(lease, () => locks.lose('ledger'))).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect(await fence.marks.list()).toEqual([])
})

test('a signal ends the wait for a transaction in progress', async () => {
  const fence = testFence()
  const first = Promise.withResolvers<void>()
  const running = fence.transaction(older, () => first.promise)
  const stop = new AbortController()
  const waiting = fence.transaction(newer, { signal: stop.signal }, () => expect.fail('it ran'))
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  first.resolve()
  await running
})

test('the next epoch refuses every fence of the epoch before', async () => {
  const fence = testFence({ resource: 'books' })
  await fence.touch(newer)
  expect(await fence.marks.advance('books')).toBe(1)
  expect(await fence.marks.advance('unknown')).toBeUndefined()
  await expect(fence.touch({ name: 'ledger', token: 7n })).rejects.toMatchObject({ code: 'STALE_TOKEN' })
  expect(await fence.marks.prune(60_000)).toBe(0)
})

test('it has the calls of a fence for PostgreSQL that do not give SQL', () => {
  type Shared = Omit<PostgresFence<TransactionOf<PgPool>>, 'statement'>
  expectTypeOf<TestFence<TransactionOf<PgPool>>>().toExtend<Shared>()
  expect(() => testFence({ resource: '' })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})
