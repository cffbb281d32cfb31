import fc from 'fast-check'
import { expect, test } from 'vitest'
import { follow } from '../test/scripted-store.ts'
import { Batch } from './batch.ts'

const { signal } = new AbortController()

const fulfilled = <Value>(value: Value): PromiseSettledResult<Value> => ({ status: 'fulfilled', value })

/** Lets every promise go on that can. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('what is asked in one turn, or while a batch is under way, is sent together', async () => {
  const sent: number[][] = []
  let answer = (): void => {}
  const batch = new Batch<number, number>(10, async requests => {
    sent.push(requests)
    await new Promise<void>(resolve => {
      answer = resolve
    })
    return requests.map(request => fulfilled(request * 2))
  })
  const first = [1, 2].map(request => batch.add(request, signal))
  await turn()
  const second = [3, 4, 5].map(request => batch.add(request, signal))
  await turn()
  expect(sent).toEqual([[1, 2]])
  answer()
  expect(await Promise.all(first)).toEqual([2, 4])
  await turn()
  expect(sent).toEqual([
    [1, 2],
    [3, 4, 5],
  ])
  answer()
  expect(await Promise.all(second)).toEqual([6, 8, 10])
})

test('a request that is refused does not fail its neighbours', async () => {
  const batch = new Batch<number, number>(10, async requests =>
    requests.map(request => (request === 2 ? { status: 'rejected', reason: 'two' } : fulfilled(request))),
  )
  const outcomes = await Promise.allSettled([1, 2, 3].map(request => batch.add(request, signal)))
  expect(outcomes).toEqual([fulfilled(1), { status: 'rejected', reason: 'two' }, fulfilled(3)])
})

test.each([
  ['rejects', async () => Promise.reject(new Error('cut off'))],
  [
    'throws',
    () => {
      throw new Error('cut off')
    },
  ],
])('a batch whose sending %s fails all that were in it, and none after', async (_, fail) => {
  let failing = true
  const batch = new Batch<number, number>(10, requests => (failing ? fail() : Promise.resolve(requests.map(fulfilled))))
  const outcomes = await Promise.allSettled([batch.add(1, signal), batch.add(2, signal)])
  expect(outcomes).toMatchObject([{ reason: { message: 'cut off' } }, { reason: { message: 'cut off' } }])
  failing = false
  expect(await batch.add(3, signal)).toBe(3)
})

test('too few answers fail those that got none', async () => {
  const batch = new Batch<number, number>(10, async () => [fulfilled(1)])
  const outcomes = await Promise.allSettled([batch.add(1, signal), batch.add(2, signal)])
  expect(outcomes).toMatchObject([{ value: 1 }, { reason: { message: 'a batch has more requests than answers' } }])
})

test('a request that was given up before its turn is not sent', async () => {
  const sent: number[][] = []
  const batch = new Batch<number, number>(10, async requests => {
    sent.push(requests)
    return requests.map(fulfilled)
  })
  const controller = new AbortController()
  const given = follow(batch.add(1, controller.signal))
  const kept = batch.add(2, signal)
  controller.abort('enough')
  expect(await kept).toBe(2)
  expect(given.error).toBe('enough')
  const early = follow(batch.add(3, AbortSignal.abort('before')))
  await turn()
  expect(early.error).toBe('before')
  expect(sent).toEqual([[2]])
})

test('whatever comes when, every request is answered once, in order, in batches within the limit', async () => {
  const step = fc.oneof(fc.constant('turn' as const), fc.nat(1_000))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 7 }), async (steps, limit) => {
      const sent: number[] = []
      const batch = new Batch<number, string>(limit, async requests => {
        expect(requests.length).toBeLessThanOrEqual(limit)
        expect(requests.length).toBeGreaterThan(0)
        sent.push(...requests)
        await turn()
        if (requests.includes(13)) throw new Error('unlucky')
        return requests.map(request => fulfilled(`answer to ${request}`))
      })
      const answers: Promise<string>[] = []
      const asked = steps.filter(each => each !== 'turn')
      for (const each of steps) {
        if (each === 'turn') await turn()
        else answers.push(batch.add(each, signal))
      }
      const outcomes = await Promise.allSettled(answers)
      expect(sent).toEqual(asked)
      for (const [index, outcome] of outcomes.entries())
        if (outcome.status === 'fulfilled') expect(outcome.value).toBe(`answer to ${asked[index]}`)
        else expect(outcome.reason).toMatchObject({ message: 'unlucky' })
    }),
    { numRuns: 50 },
  )
})
