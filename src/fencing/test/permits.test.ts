import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failureOf } from '../../../test/support.ts'
import { testLocks } from '../../testing/index.ts'
import { fileFence } from '../files/index.ts'
import type { Holder } from '../mark.ts'
import { tokensOf } from '../tokens.ts'
import { type Bank, banks } from './banks.ts'
import { permit, reader, stale, writer } from './support.ts'

/** A holder as a process shows it that does not know that it has ended. */
function paused({ name, token, limit, slots }: Holder): Holder {
  return { name, token, limit, slots }
}

describe.each(Object.keys(banks))('%s', engine => {
  let bank: Bank
  beforeAll(async () => {
    bank = await (banks[engine] as () => Promise<Bank>)()
  })
  afterAll(() => bank.close())

  const marks = async (prefix: string): Promise<Record<string, bigint>> =>
    Object.fromEntries((await bank.marks.list(prefix)).map(({ slot = 'name', token }) => [slot, token]))

  test('permits of different slots do not refuse each other, and a stale one of a slot is refused', async () => {
    const locks = testLocks()
    const semaphore = locks.semaphore('api', { limit: 2 })
    const [older, newer] = [await semaphore.acquire(), await semaphore.acquire()]
    await bank.add(newer)
    await bank.add(older)
    const late = paused(newer)
    await newer.release()
    const next = await semaphore.acquire()
    await bank.add(next)
    await expect(bank.add(late)).rejects.toEqual(stale(newer.token, next.token))
    await bank.add(older)
    expect(await marks('api')).toEqual({ name: 0n, 0: older.token, 1: next.token })
    await locks.close()
  })

  test('a stale writer is refused once a reader has shown a mark, and a stale reader once a writer has', async () => {
    const locks = testLocks()
    const pages = locks.readWrite('pages')
    const writing = await pages.writer.acquire()
    await bank.add(writing)
    const lateWriter = paused(writing)
    await writing.release()
    const reading = await pages.reader.acquire()
    await bank.add(lateWriter) // so a reader that shows no mark reads before and after this write
    await bank.touch(reading)
    await expect(bank.add(lateWriter)).rejects.toEqual(stale(writing.token, reading.token))
    const lateReader = paused(reading)
    await reading.release()
    const next = await pages.writer.acquire()
    await bank.add(next)
    await expect(bank.touch(lateReader)).rejects.toEqual(stale(reading.token, next.token))
    await locks.close()
  })

  test.each([0, 7, 4_000_000])(
    'a writer is refused by a later reader in slot %i, and by a later permit there',
    async slot => {
      const [read, permitted] = [`read ${slot}`, `permitted ${slot}`]
      await bank.add(writer(read, 5))
      await bank.touch(reader(read, 6, slot))
      await expect(bank.add(writer(read, 5))).rejects.toEqual(stale(5n, 6n))
      await bank.add(writer(read, 7))
      await bank.touch(permit(permitted, 6, 5_000_000, slot))
      await expect(bank.add(writer(permitted, 5))).rejects.toEqual(stale(5n, 6n))
      await bank.add(writer(permitted, 6))
    },
  )

  test('a permit of several slots is compared with the last one of each, and a refused one raises no mark', async () => {
    await bank.add(permit('several', 5, 4, 0, 2))
    await bank.add(permit('several', 6, 4, 1, 3))
    await bank.add(permit('several', 5, 4, 0, 2))
    await bank.add(permit('several', 8, 4, 0))
    await expect(bank.add(permit('several', 7, 4, 0, 3))).rejects.toEqual(stale(7n, 8n))
    await expect(bank.add(permit('several', 5, 4, 0, 2))).rejects.toEqual(stale(5n, 8n))
    expect(await marks('several')).toEqual({ name: 0n, 0: 8n, 1: 6n, 2: 5n, 3: 6n })
  })

  test('readers share 16 marks, each of which keeps the highest token and refuses no reader', async () => {
    for (const [slot, token] of [
      [0, 9],
      [16, 3],
      [32, 11],
      [5, 4],
      [1_000, 12],
      [16, 3],
    ] as const)
      await bank.touch(reader('stripes', token, slot))
    expect(await marks('stripes')).toEqual({ name: 0n, r0: 11n, r5: 4n, r8: 12n })
    await expect(bank.add(writer('stripes', 11))).rejects.toEqual(stale(11n, 12n))
    await bank.touch(permit('stripes', 2, 5, 0)) // which has marks of its own
    await bank.add(writer('stripes', 13))
    for (const late of [reader('stripes', 12, 8), permit('stripes', 12, 5, 3)])
      await expect(bank.touch(late)).rejects.toEqual(stale(12n, 13n))
  })

  test('a set of leases and permits shows all of them', async () => {
    await bank.add({ leases: [permit('both', 5, 3, 1), writer('alone', 5)] })
    await expect(bank.add({ leases: [writer('alone', 6), permit('both', 4, 3, 1)] })).rejects.toEqual(stale(4n, 5n))
    await expect(bank.add({ leases: [permit('both', 6, 3, 0), writer('alone', 4)] })).rejects.toEqual(stale(4n, 5n))
    await bank.add({ leases: [permit('both', 3, 3, 0), writer('alone', 6)] })
  })

  test('epochs come before tokens, also between permits and writers, and advance outranks all of them', async () => {
    const old = bank.with({ resource: 'epoch' })
    const next = bank.with({ resource: 'epoch', epoch: 1 })
    await old.touch(permit('any', 900, 4, 0))
    await next.touch(permit('any', 3, 4, 1))
    await expect(old.touch(writer('any', 990))).rejects.toEqual(stale(990n, 3n))
    expect(await bank.marks.advance('epoch')).toBe(2)
    await expect(next.touch(permit('any', 5, 4, 2))).rejects.toEqual(stale(5n, 0n))
    expect(await bank.marks.advance('no such epoch')).toBeUndefined()
  })

  test('prune deletes a name with its slots, unless one of them was raised lately', async () => {
    for (const slot of [0, 1, 2]) await bank.touch(permit('pruned', 5, 3, slot))
    expect(await bank.marks.prune(3_600_000, 'pruned')).toBe(0)
    const count = async (): Promise<number> => (await bank.marks.list('pruned')).length
    expect(await count()).toBe(4)
    await new Promise(resolve => setTimeout(resolve, 5)) // the clock of the engine moves on
    expect(await bank.marks.prune(0, 'pruned')).toBe(4)
    expect(await count()).toBe(0)
    await bank.touch(permit('pruned', 4, 3, 0))
  })

  test('a command shows a permit by HOLDFAST_TOKENS, and is refused as the permit is', async () => {
    const locks = testLocks()
    const semaphore = locks.semaphore('books', { limit: 3 })
    const [first, both] = [await semaphore.acquire(), await semaphore.acquire({ permits: 2 })]
    const commandOf = (held: Parameters<typeof tokensOf>[0]): { leases: Holder[] } => ({
      leases: Object.entries(tokensOf(held)).map(([name, token]) => ({ name, token })),
    })
    const command = commandOf(both)
    expect(command).toEqual({ leases: [{ name: 'books', token: `${both.token}/3:1+2` }] })
    await bank.add(command)
    await bank.add(commandOf(first))
    await both.release()
    await bank.touch(await semaphore.acquire())
    await expect(bank.add(command)).rejects.toMatchObject({ code: 'STALE_TOKEN', token: both.token })
    await locks.close()
  })

  test('a permit that is over in this process is refused', async () => {
    const locks = testLocks()
    const held = await locks.semaphore('over', { limit: 2 }).acquire({ permits: 2 })
    await locks.lose('over')
    expect(await failureOf(bank.add(held))).toMatchObject({ code: 'LEASE_LOST', leaseName: 'over' })
    await locks.close()
  })

  test.each<[string, Partial<Holder>]>([
    ['slots without a limit', { slots: [0] }],
    ['a limit without slots', { limit: 3 }],
    ['no slot', { limit: 3, slots: [] }],
    ['a slot at the limit', { limit: 3, slots: [3] }],
    ['a slot twice', { limit: 3, slots: [1, 1] }],
    ['slots that fall', { limit: 3, slots: [1, 0] }],
    ['half a slot', { limit: 3, slots: [0.5] }],
    ['a limit of 2^31', { limit: 2 ** 31, slots: [0] }],
    ['65 slots', { limit: 100, slots: Array.from({ length: 65 }, (_, slot) => slot) }],
    ['a text that is no token', { token: '5/3' }],
    ['a text with a slot at the limit', { token: '5/3:3' }],
    ['a text and slots', { token: '5', limit: 3, slots: [0] }],
  ])('refuses %s', async (_, wrong) => {
    expect(await failureOf(bank.touch({ name: 'wrong', token: 5n, ...wrong }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })
})

test('fences with one mark refuse permits, except those of limit 1', async () => {
  const path = join(tmpdir(), `holdfast-permit-${process.pid}.txt`)
  expect(await failureOf(fileFence().write(permit('x', 1, 3, 0), path, 'text'))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/has one mark/),
  })
})
