import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Batch } from './batch.ts'

const { signal } = new AbortController()

/** Lets every promise go on that can. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

interface Entry {
  readonly value: number
  readonly signal: AbortSignal
  reject(reason: unknown): void
}

interface Stage {
  readonly batch: Batch<Entry>
  /** What was sent, in order. */
  readonly sent: number[][]
  /** Lets the next leave after the first of those that are under way. */
  answer(): void
  add(...values: number[]): void
}

function stage(limit = 64): Stage {
  const sent: number[][] = []
  const underWay: (() => void)[] = []
  const send = (entries: Entry[], next: () => void): void => {
    sent.push(entries.map(({ value }) => value))
    underWay.push(next)
  }
  const batch = new Batch<Entry>({ limit, send })
  const add = (...values: number[]): void => {
    for (const value of values) batch.add({ value, signal, reject: () => {} })
  }
  return { batch, sent, answer: () => underWay.shift()?.(), add }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

test('entries of one turn of the event loop are sent together', async () => {
  const { sent, add } = stage()
  add(1)
  await Promise.resolve().then(() => Promise.resolve().then(() => add(2)))
  expect(sent).toEqual([])
  await turn()
  expect(sent).toEqual([[1, 2]])
})

test('at most two batches are in flight, and later entries share the next', async () => {
  const { sent, add, answer } = stage()
  for (const value of upTo(5)) {
    add(value)
    await turn()
  }
  expect(sent).toEqual([[0], [1]])
  answer()
  await turn()
  expect(sent).toEqual([[0], [1], [2, 3, 4]])
  answer()
  answer()
  add(5)
  await turn()
  expect(sent.slice(3)).toEqual([[5]])
})

test('many entries are split between two batches, so that client and server both work', async () => {
  const { sent, add } = stage()
  add(...upTo(50))
  await turn()
  expect(sent.map(entries => entries.length)).toEqual([25, 25])
})

test('a request that was given up before its turn is not sent', async () => {
  const { batch, sent, add } = stage()
  const controller = new AbortController()
  const reasons: unknown[] = []
  const reject = (reason: unknown): void => {
    reasons.push(reason)
  }
  batch.add({ value: 1, signal: controller.signal, reject })
  add(2)
  batch.add({ value: 3, signal: AbortSignal.abort('before'), reject })
  controller.abort('enough')
  await turn()
  expect(sent).toEqual([[2]])
  expect(reasons).toEqual(['enough', 'before'])
})

test('every entry is sent once, in order and within the limits, whatever the timing', async () => {
  const step = fc.oneof(fc.constantFrom('turn' as const, 'answer' as const), fc.integer({ min: 1, max: 100 }))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 40 }), async (steps, limit) => {
      const { sent, add, answer } = stage(limit)
      let [count, answers] = [0, 0]
      const isWithinLimits = (): void => {
        expect(sent.length - answers).toBeLessThanOrEqual(2)
        expect(Math.max(0, ...sent.map(entries => entries.length))).toBeLessThanOrEqual(limit)
      }
      const answerOne = async (): Promise<void> => {
        if (sent.length > answers) answers += 1
        answer()
        await turn()
        isWithinLimits()
      }
      for (const each of steps) {
        if (each === 'turn') await turn()
        else if (each === 'answer') await answerOne()
        else add(...upTo(each).map(() => count++))
        isWithinLimits()
      }
      await turn()
      while (sent.length > answers) await answerOne()
      expect(sent.flat()).toEqual(upTo(count))
    }),
    { numRuns: 100 },
  )
})
