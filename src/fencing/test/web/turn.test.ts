import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { failureOf } from '../../../../test/support.ts'
import { inTurn, memoryMarks, type RequestFence } from '../../http/index.ts'

const fence = (token: number, epoch = 0): RequestFence => ({ name: 'a', token: BigInt(token), epoch })
const pauses = fc.constantFrom(0, 0, 1, 2)
const writers = fc.array(fc.record({ token: fc.integer({ min: 1, max: 9 }), first: pauses, second: pauses }), {
  minLength: 2,
  maxLength: 50,
})
type Writers = readonly { token: number; first: number; second: number }[]

/** Every writer pauses before its request and in the middle of its write; answers the order of the writes. */
async function compete(
  all: Writers,
  write: (token: number, work: () => Promise<void>) => Promise<void>,
): Promise<number[]> {
  const written: number[] = []
  const one = async ({ token, first, second }: Writers[number]): Promise<void> => {
    await sleep(first)
    await write(token, async () => {
      await sleep(second)
      written.push(token)
    })
  }
  await Promise.allSettled(all.map(one))
  return written
}

const sorted = (tokens: readonly number[]): number[] => tokens.toSorted((one, other) => one - other)

test('with any number of pausing writers, no older one writes after a newer one', async () => {
  await fc.assert(
    fc.asyncProperty(writers, async all => {
      const marks = memoryMarks()
      const written = await compete(all, (token, work) => inTurn(fence(token), marks, work))
      expect(written).toEqual(sorted(written))
      expect(written.at(-1)).toBe(Math.max(...all.map(({ token }) => token)))
    }),
    { numRuns: 40 },
  )
})

test('nor does it for a thousand simultaneous transactions', async () => {
  const thousand = Array.from({ length: 1_000 }, () => {
    const first = Math.random() * 200 // newer ones come later, by and large
    return { token: 1 + Math.floor(first * 5 + Math.random() * 50), first, second: Math.random() < 0.1 ? 5 : 0 }
  })
  const marks = memoryMarks()
  const written = await compete(thousand, (token, work) => inTurn(fence(token), marks, work))
  expect(written).toEqual(sorted(written))
  expect(written.at(-1)).toBe(Math.max(...thousand.map(({ token }) => token)))
})

test('with a separate check before the write, an older holder writes', async () => {
  const all = [
    { token: 1, first: 0, second: 500 },
    { token: 2, first: 5, second: 0 },
  ]
  const marks = memoryMarks()
  const naive = async (token: number, work: () => Promise<void>): Promise<void> => {
    await marks.raise('a', fence(token))
    await work()
  }
  expect(await compete(all, naive)).toEqual([2, 1])
})

test('turns of different resources, and of different marks, do not wait for each other', async () => {
  const marks = memoryMarks()
  const never = inTurn(fence(1), marks, () => new Promise(() => {}))
  expect(await inTurn({ ...fence(1), name: 'b' }, marks, async () => 'b')).toBe('b')
  expect(await inTurn(fence(1), memoryMarks(), async () => 'other')).toBe('other')
  void never
})

test('a caller that stops waiting lets no later call overtake, and the next ones get their turn', async () => {
  const marks = memoryMarks()
  const first = Promise.withResolvers<void>()
  const order: string[] = []
  const one = inTurn(fence(1), marks, () => first.promise.then(() => order.push('one')))
  const controller = new AbortController()
  const two = inTurn(fence(1), marks, { signal: controller.signal }, async () => order.push('two'))
  const three = inTurn(fence(1), marks, async () => order.push('three'))
  controller.abort(new Error('enough'))
  expect((await failureOf(two)).message).toBe('enough')
  first.resolve()
  await Promise.all([one, three])
  expect(order).toEqual(['one', 'three'])
})

test('a turn also ends when its work throws, and rejects with that error', async () => {
  const marks = memoryMarks()
  const failing = inTurn(fence(1), marks, () => Promise.reject(new Error('the disk is full')))
  expect((await failureOf(failing)).message).toBe('the disk is full')
  expect(await inTurn(fence(1), marks, async () => 1)).toBe(1)
})
