import { expect, onTestFinished, test, vi } from 'vitest'
import type { LeaseRecord } from '../contract/store.ts'
import type { Change } from './changes.ts'
import { Sight } from './sight.ts'
import { type Look, Survey } from './survey.ts'

/** A survey of one name, which shows what is left of the lease of an owner at each look. */
function surveyed(...looks: (readonly [owner: string, remaining: number] | undefined)[]): Promise<Change[]> {
  return surveyedOf('job', ...looks)
}

async function surveyedOf(name: string, ...looks: Parameters<typeof surveyed>): Promise<Change[]> {
  const records = looks.map((look, index): LeaseRecord[] => {
    if (!look) return []
    const [owner, remaining] = look
    const token = BigInt(looks.findLastIndex((each, at) => at <= index && each?.[0] !== owner) + 2)
    return [{ name, state: 'held', owner, token, note: '', remaining }]
  })
  const survey = new Survey({
    async *list() {
      yield* records.shift() ?? []
    },
    inspect: () => Promise.reject(new Error('one listing is enough')),
  })
  onTestFinished(() => survey.close())
  return new Promise(resolve => {
    let seen = 0
    survey.watch(({ changes }: Look) => {
      seen += 1
      if (seen === looks.length) resolve([...changes])
    })
  })
}

test('a holder that was seen to be no longer renewed was taken over', async () => {
  expect(await surveyed(['a', 9_000], ['a', 10_000], ['a', 3_000], ['b', 10_000])).toMatchObject([
    { from: 'a', to: 'b', isTakeover: true },
  ])
})

test('a holder that vanished after its last renewal is shown, although nobody follows', async () => {
  expect(await surveyed(['a', 9_000], ['a', 10_000], ['a', 3_000], undefined)).toMatchObject([
    { from: 'a', to: '', isTakeover: true },
  ])
})

test('a holder that was renewed until it vanished released the name', async () => {
  expect(await surveyed(['a', 9_000], ['a', 10_000], undefined)).toEqual([])
  expect(await surveyed(['a', 9_000], ['a', 10_000], ['b', 10_000])).toMatchObject([
    { from: 'a', to: 'b', isTakeover: false },
  ])
})

test('that another replica ran a job is no change of its holder', async () => {
  expect(await surveyedOf('job\u241fran', ['a', 9_000], ['b', 10_000])).toEqual([])
  expect(await surveyed(['a', 9_000], ['b', 10_000])).toHaveLength(1)
})

/** A survey of a semaphore of three: the tokens that hold it at each look, each with what is left of its lease. */
async function shared(...looks: Record<string, number>[]): Promise<Look> {
  const survey = new Survey({
    async *list() {
      for (const [slot, [token, remaining]] of Object.entries(looks.shift() ?? {}).entries()) {
        const common = { name: 'api', state: 'held', note: '', limit: 3, slots: [slot] } as const
        yield { ...common, owner: `owner ${token}`, token: BigInt(token), remaining }
      }
    },
    inspect: () => Promise.reject(new Error('one listing is enough')),
  })
  onTestFinished(() => survey.close())
  return new Promise(resolve => {
    survey.watch(look => looks.length === 0 && resolve(look))
  })
}

test('permits that come and go are no changes of holder, but one that was no longer renewed is', async () => {
  const come = await shared({ 1: 9_000 }, { 1: 10_000, 2: 9_000 }, { 2: 10_000 }, { 2: 9_000, 3: 9_000 })
  expect(come.changes).toEqual([])
  expect(come.sights.get('api')?.holds.map(({ token }) => token)).toEqual(['2', '3'])
  expect(come.sights.get('api')?.past.map(({ token }) => token)).toEqual(['1'])
  const lost = await shared(
    { 1: 9_000, 2: 9_000 },
    { 1: 10_000, 2: 10_000 },
    { 1: 3_000, 2: 10_000 },
    { 3: 9_000, 4: 9_000 },
  )
  expect(lost.changes).toMatchObject([{ name: 'api', from: 'owner 1', to: 'owner 3', isTakeover: true }])
})

test('of several holders that may be stuck each says its slot', async () => {
  const { signs } = await shared({ 1: 9_000, 2: 9_000 }, { 1: 10_000, 2: 10_000 }, { 1: 3_000, 2: 10_000 })
  expect(signs.get('api')).toMatchObject([{ kind: 'not renewed', text: expect.stringMatching(/\(slot 0\)$/) }])
})

/** For how long each waiter was seen to wait, by looks a second apart: who holds, then who waits. */
function waits(...looks: (readonly [token: bigint, ...owners: string[]])[]): number[] {
  const sight = new Sight('job')
  for (const [second, [token, holder = '', ...waiters]] of looks.entries()) {
    const common = { name: 'job', note: '', remaining: 9_000 }
    const queue = waiters.map((owner): LeaseRecord => ({ ...common, state: 'waiting', owner }))
    sight.see([{ ...common, state: 'held', owner: holder, token }, ...queue], second * 1_000, 1_000)
  }
  return sight.waiters.map(({ since }) => (looks.length - 1) * 1_000 - since)
}

test('a waiter waits at least since it was first seen below the same lease', () => {
  expect(waits([1n, 'a', 'b'], [1n, 'a', 'b', 'c'], [1n, 'a', 'b', 'c'])).toEqual([2_000, 1_000])
})

test('who may have been served and wait again is not said to wait since before', () => {
  expect(waits([1n, 'a', 'b'], [2n, 'b', 'a', 'c'], [9n, 'a', 'b', 'c'])).toEqual([0, 0])
  expect(waits([1n, 'a', 'b'], [7n, 'a', 'b'])).toEqual([0])
})

test('which of several waiters of one owner is new is not known', () => {
  expect(waits([1n, 'a', 'b', 'b'], [1n, 'a', 'b', 'b', 'c'], [1n, 'a', 'b', 'c'])).toEqual([0, 1_000])
})

test('beyond 5,000 records, a name that is not read is unknown, and did not end', async () => {
  const record = (name: string, remaining: number): LeaseRecord => {
    return { name, state: 'held', owner: 'a', token: 1n, note: '', remaining }
  }
  const others = Array.from({ length: 5_000 }, (_, index) => record(`job-${index}`, 9_000))
  const looks = [[record('z', 9_000)], [record('z', 10_000)], [record('z', 3_000)], [...others, record('z', 2_000)]]
  const survey = new Survey({
    async *list() {
      yield* looks.shift() ?? []
    },
    inspect: () => Promise.reject(new Error('one listing is enough')),
  })
  onTestFinished(() => survey.close())
  const { sights, changes } = await new Promise<Look>(resolve => {
    survey.watch(look => look.isPartial && resolve(look))
  })
  expect([sights.size, sights.has('z'), changes]).toEqual([5_000, false, []])
})

test('all viewers share one look', async () => {
  let listings = 0
  const survey = new Survey({
    async *list() {
      listings += 1
      yield* []
    },
    inspect: () => Promise.reject(new Error('one listing is enough')),
  })
  onTestFinished(() => survey.close())
  const looks = Array.from({ length: 100 }, () => 0)
  await new Promise<void>(resolve => {
    for (const viewer of looks.keys())
      survey.watch(() => {
        looks[viewer] = (looks[viewer] ?? 0) + 1
        if (looks.every(seen => seen === 3)) resolve()
      })
  })
  expect(listings).toBe(3)
})

test('a store that does not answer for a while is looked at again soon after that', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const hangsUntil = Date.now() + 60_000
  const survey = new Survey({
    async *list() {
      if (Date.now() < hangsUntil) {
        await new Promise(resolve => setTimeout(resolve, 2_000))
        throw new Error('no answer within 2000 ms')
      }
      yield* []
    },
    inspect: () => Promise.reject(new Error('one listing is enough')),
  })
  onTestFinished(() => survey.close())
  const seen: (readonly [at: number, failure: Error | undefined])[] = []
  survey.watch(({ failure }) => seen.push([Date.now() - hangsUntil, failure]))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(seen.every(([, failure]) => failure?.message === 'no answer within 2000 ms')).toBe(true)
  expect(seen.length, 'a server in trouble is not asked often').toBeLessThan(10)
  await vi.advanceTimersByTimeAsync(30_000)
  expect(survey.latest).toMatchObject({ failure: undefined, pause: 500 })
})
