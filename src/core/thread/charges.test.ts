import { afterEach, expect, test } from 'vitest'
import { refused, type Stage, stage, unanswered } from '../../../test/scripted-store.ts'
import type { Claim } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { Pulse } from '../advice/pulse.ts'
import { Charges } from './charges.ts'
import { Liveness } from './liveness.ts'
import type { News, Order } from './messages.ts'
import type { Moment } from './moment.ts'
import { ThreadPulse } from './pulse.ts'
import { SharedTerm } from './term.ts'

const TTL = 60_000
const MARGIN = 602
const GONE = Number.NEGATIVE_INFINITY
const claim: Claim = { name: 'a', id: 'a1', owner: 'main', ttl: TTL, note: '', queue: false }

const open: Charges[] = []
afterEach(() => {
  for (const charges of open.splice(0)) charges.close()
})

interface Thread extends Stage {
  readonly charges: Charges
  readonly news: News[]
  /** Of the main thread. */
  readonly pulse: Pulse
  /** As the main thread sees it. */
  readonly term: SharedTerm
  /** Lets time pass in which the main thread proves that it lives. */
  live(ms: number): Promise<void>
  tell(order: Order): Promise<void>
}

/** What runs in the worker, in virtual time, with a lease that the main thread holds. */
async function thread(options: Partial<Extract<Order, { kind: 'hold' }>> = {}): Promise<Thread> {
  const set = stage()
  const { clock, store, server } = set
  const news: News[] = []
  const monotonic = (): bigint => BigInt(Math.round(clock.now() * 1e6))
  const now = (): Moment => ({ monotonic: monotonic(), wall: Math.floor(clock.wall()) })
  const liveness = new Liveness(undefined, monotonic)
  const isHeard = (): boolean => true
  liveness.prove(isHeard)
  const environment = { clock, random: () => 0.5 }
  const pulse = new Pulse(clock, 0, undefined)
  const threadPulse = new ThreadPulse(environment, pulse.share())
  const charges = new Charges(store, environment, liveness, threadPulse, said => news.push(said), now)
  open.push(charges)
  const grant = await server.acquire(claim, new AbortController().signal)
  if (!grant.held) throw new Error('the name is not free')
  const term = new SharedTerm(undefined, now)
  term.write(() => TTL - MARGIN)
  const maxHold = Number.POSITIVE_INFINITY
  const hold = {
    kind: 'hold',
    claim,
    token: grant.token,
    term: term.memory,
    livenessLimit: undefined,
    maxHold,
  } as const
  await charges.carryOut({ ...hold, ...options })
  return {
    ...set,
    charges,
    news,
    pulse,
    term,
    async live(ms) {
      for (let passed = 0; passed < ms; passed += 1_000) {
        liveness.prove(isHeard)
        await clock.advance(1_000)
      }
    },
    tell: order => charges.carryOut(order),
  }
}

test('it renews, and what remains is there to read and told to those who listen', async () => {
  const { term, live, news, store } = await thread()
  await live(TTL)
  expect(store.count('renew')).toBe(3)
  expect(term.read()).toBe(TTL - MARGIN - (TTL - 17_500 - 2 * 20_000))
  expect(news.map(({ kind }) => kind)).toEqual(['renewed', 'renewed', 'renewed'])
  expect(news[0]).toMatchObject({ id: 'a1', latency: 0, margin: TTL - MARGIN - 17_500 })
  expect(store.calls).toEqual(['renew', 'renew', 'renew'])
})

test('it renews with the note that the main thread wrote last, for a store that restores it', async () => {
  const { live, store, tell } = await thread()
  await tell({ kind: 'annotated', id: 'a1', note: 'new' })
  await live(TTL / 2)
  expect(store.claim?.note).toBe('new')
  await tell({ kind: 'annotated', id: 'unknown', note: 'of one that was stopped' })
})

test('it renews no more when the main thread was silent for longer than its limit, until it is heard again', async () => {
  const { live, news, store, clock } = await thread({ livenessLimit: 10_000 })
  await clock.advance(20_000)
  expect(store.count('renew')).toBe(0)
  expect(news[0]).toMatchObject({ kind: 'failed', error: { code: 'STORE_UNAVAILABLE', retryable: true } })
  expect(news[0]).toMatchObject({
    error: { message: 'not renewed: the event loop did not turn for 17500 ms, and may for 10000 ms' },
  })
  await live(1_000)
  expect(store.count('renew')).toBe(1)
})

test('a silent main thread loses its lease within its limit and the ttl, and what is over stays over', async () => {
  const { term, live, news, store, clock } = await thread({ livenessLimit: 30_000 })
  await clock.advance(30_000 + TTL - MARGIN)
  expect(store.count('renew')).toBe(1)
  expect(news.at(-1)).toEqual({ kind: 'over', id: 'a1' })
  await live(2 * TTL)
  expect(store.count('renew')).toBe(1)
  term.read()
  expect(news.at(-1)).toEqual({ kind: 'over', id: 'a1' })
})

test('a lease that was broken is told as gone', async () => {
  const { term, live, news, other } = await thread()
  await other.break('a')
  await live(18_000)
  expect(term.read()).toBe(GONE)
  expect(news).toEqual([{ kind: 'over', id: 'a1' }])
})

test('a store that fails is asked again until the deadline, and told about', async () => {
  const { term, live, news, store } = await thread()
  term.read()
  store.rule('renew', refused)
  await live(20_000)
  const count = store.count('renew')
  expect(count).toBeGreaterThan(2)
  expect(news.map(({ kind }) => kind)).toEqual(Array(count).fill('failed'))
  await live(TTL)
  expect(news.at(-1)).toEqual({ kind: 'over', id: 'a1' })
  const remaining = term.read()
  expect(remaining).toBeLessThan(TTL - MARGIN - 17_500)
})

test('it is not renewed after its maxHold', async () => {
  const { live, store } = await thread({ maxHold: 30_000 })
  await live(50_000)
  expect(store.count('renew')).toBe(1)
})

test('a stop is confirmed when no renewal is under way, and none follows', async () => {
  const { term, live, news, store, tell, clock } = await thread()
  const answer = store.holdReplies('renew')
  await live(18_000)
  const stopped = tell({ kind: 'stop', id: 'a1' })
  await clock.advance(1_000)
  expect(news).toEqual([])
  answer()
  await clock.advance(0)
  await stopped
  expect(news).toEqual([{ kind: 'stopped', id: 'a1', unsettled: false }])
  await live(2 * TTL)
  expect(store.count('renew')).toBe(1)
  expect(store.count('release')).toBe(0)
  expect(clock.pending).toBe(0)
  // To the main thread, which may have given up only the renewals, the lease goes on until its deadline.
  expect(term.read()).toBe(TTL - MARGIN - 19_000 - 2 * TTL)
})

test('a stop says whether a renewal went unanswered', async () => {
  const { live, news, store, tell, clock } = await thread()
  store.rule('renew', unanswered)
  await live(18_000)
  const stopped = tell({ kind: 'stop', id: 'a1' })
  await clock.advance(5_000)
  await stopped
  expect(news.at(-1)).toEqual({ kind: 'stopped', id: 'a1', unsettled: true })
})

test('what was stopped before, or is not known, is confirmed as well', async () => {
  const { news, tell } = await thread()
  await tell({ kind: 'stop', id: 'other' })
  expect(news).toEqual([{ kind: 'stopped', id: 'other', unsettled: false }])
})

test('a shorter ttl counts from before it is asked for', async () => {
  const { term, news, store, tell, clock } = await thread()
  term.read()
  store.holdRequests('renew')
  const extended = tell({ kind: 'extend', id: 'a1', ttl: 6_000, call: 1 })
  await clock.advance(0)
  expect(term.read()).toBe(6_000 - 62)
  await clock.advance(5_000)
  await extended
  expect(news.at(-1)).toMatchObject({ kind: 'extended', call: 1, error: { code: 'OUTCOME_UNKNOWN' } })
})

test('an extension waits for the renewal under way, so that its own ttl is the one that counts', async () => {
  const { term, live, news, store, tell, clock } = await thread()
  const answer = store.holdReplies('renew')
  await live(18_000)
  const extended = tell({ kind: 'extend', id: 'a1', ttl: 20_000, call: 1 })
  await clock.advance(1_000)
  expect(store.count('renew')).toBe(1)
  answer()
  await clock.advance(0)
  await extended
  expect(term.read()).toBe(20_000 - 202)
  expect(news.at(-1)).toEqual({ kind: 'extended', call: 1, error: undefined })
  await live(20_000)
  expect(store.count('renew')).toBe(2 + 3)
})

test('a stop waits for the extension under way, which is answered', async () => {
  const { news, store, tell, clock } = await thread()
  const answer = store.holdReplies('renew')
  const extended = tell({ kind: 'extend', id: 'a1', ttl: TTL, call: 7 })
  const stopped = tell({ kind: 'stop', id: 'a1' })
  await clock.advance(1_000)
  expect(news).toEqual([])
  answer()
  await clock.advance(0)
  await Promise.all([extended, stopped])
  expect(news).toEqual([
    { kind: 'extended', call: 7, error: undefined },
    { kind: 'stopped', id: 'a1', unsettled: false },
  ])
})

test('what the store tells of a loss is there to read at once', async () => {
  const { term, news, store } = await thread()
  store.tell.get('a1')?.()
  expect(term.read()).toBe(GONE)
  expect(news).toEqual([{ kind: 'over', id: 'a1' }])
})

test('what its renewals show is in the advice of the main thread at once', async () => {
  const { pulse, live, store, clock } = await thread()
  store.rule('renew', async forward => {
    const grant = await forward()
    await new Promise<void>(resolve => clock.after(300, resolve))
    return grant
  })
  await live(100 * 20_000)
  const { heartbeats, failed, latency, silence, leastTtl } = pulse.advice()
  expect({ heartbeats, failed, silence }).toEqual({ heartbeats: 100, failed: 0, silence: 300 })
  expect(latency?.worst).toBeCloseTo(300, -1)
  expect(leastTtl).toBeGreaterThanOrEqual(3_000)
  store.rule('renew', refused)
  await live(22_000)
  expect(pulse.advice()).toMatchObject({ heartbeats: 100, silence: expect.any(Number) })
  expect(pulse.advice().failed).toBeGreaterThan(1)
  expect(pulse.advice().silence).toBeGreaterThan(1_000)
})

test('a thread that follows another goes on with what that has seen', async () => {
  const { pulse, live, store } = await thread()
  store.rule('renew', refused)
  await live(22_000)
  const { failed, silence } = pulse.advice()
  const next = new ThreadPulse({ clock: new VirtualClock(), random: () => 0.5 }, pulse.share())
  next.rest()
  expect(pulse.advice()).toMatchObject({ failed, silence })
})

test('a renewal that the silence of the main thread forbade is no failure of the store', async () => {
  const { pulse, news, live, store, clock } = await thread({ livenessLimit: 10_000 })
  await clock.advance(20_000)
  expect(news[0]).toMatchObject({ kind: 'failed' })
  await live(1_000)
  expect(store.count('renew')).toBe(1)
  expect(pulse.advice()).toMatchObject({ heartbeats: 1, failed: 0, silence: 0 })
})

test('only a renewal of a tenth of the ttl and more is told as slow', async () => {
  const { news, store, tell, clock } = await thread()
  await tell({ kind: 'extend', id: 'a1', ttl: 6_000, call: 1 })
  for (const latency of [590, 610]) {
    store.rule('renew', async forward => {
      const grant = await forward()
      await new Promise<void>(resolve => clock.after(latency, resolve))
      return grant
    })
    const extended = tell({ kind: 'extend', id: 'a1', ttl: 6_000, call: latency })
    await clock.advance(latency)
    await extended
  }
  expect(news.filter(({ kind }) => kind === 'slow')).toEqual([{ kind: 'slow', id: 'a1' }])
})
