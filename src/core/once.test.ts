import { afterEach, describe, expect, expectTypeOf, test, vi } from 'vitest'
import { follow, lost, type Rule, refused, stage, unanswered } from '../../test/scripted-store.ts'
import type { Lease } from '../contract/lease.ts'
import { markerOf } from '../contract/reserved.ts'
import type { LeaseRecord } from '../contract/store.ts'
import type { VirtualClock } from '../testing/clock.ts'

const HOUR = 3_600_000
const within = HOUR
const form = 'once needs options with within: once(name, { within: 3_600_000 }, work)'
const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})

afterEach(() => warnings.mockClear())

/** The store shows nothing, and does not end. */
const silent: Rule = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) })

/** Work that takes `ms`. */
function taking(clock: VirtualClock, ms: number, fails = false): () => Promise<string> {
  return () =>
    new Promise((resolve, reject) => {
      clock.after(ms, () => (fails ? reject(new Error('disk full')) : resolve('done')))
    })
}

test('a success counts for within, from the start of the run', async () => {
  const { locks, other, clock } = stage({ owner: 'me' })
  const run = follow(locks.once('a', { within }, taking(clock, HOUR / 2)))
  await clock.advance(HOUR / 2)
  expect(run.value).toEqual({ ran: true, result: 'done' })
  const never = vi.fn<() => Promise<number>>(async () => 0)
  const skipped = await other.once('a', { within }, never)
  expect(skipped).toMatchObject({ ran: false, why: 'ran', holder: { name: 'a', owner: 'me', remaining: HOUR / 2 } })
  expect(await other.tryAcquire('a'), 'the name itself is free').toBeDefined()
  expect(never).not.toHaveBeenCalled()
})

test('after within the work runs again', async () => {
  const { locks, clock } = stage()
  const work = vi.fn<() => Promise<string>>(async () => 'done')
  await locks.once('a', { within }, work)
  await clock.advance(within - 1)
  expect(await locks.once('a', { within }, work)).toMatchObject({ ran: false, why: 'ran' })
  await clock.advance(1)
  expect(await locks.once('a', { within }, work)).toEqual({ ran: true, result: 'done' })
  expect(work).toHaveBeenCalledTimes(2)
})

test('a marker ends by the within of the run that wrote it, whatever a later call asks', async () => {
  const { locks, other, clock } = stage()
  const work = async (): Promise<string> => 'done'
  await locks.once('a', { within }, work)
  await clock.advance(within - 1)
  expect(await other.once('a', { within: 1_000 }, work)).toMatchObject({ why: 'ran', holder: { remaining: 1 } })
  await clock.advance(1)
  expect(await other.once('a', { within: 2 * within }, work)).toMatchObject({ ran: true })
})

test('a run that took longer than within leaves no marker', async () => {
  const { locks, other, clock } = stage()
  const run = follow(locks.once('a', { within: 1_000 }, taking(clock, 1_000)))
  await clock.advance(1_000)
  expect(run.value).toEqual({ ran: true, result: 'done' })
  expect(await other.once('a', { within: 1_000 }, async () => 'again')).toMatchObject({ ran: true })
})

test('a marker lasts at least as long as the store accepts', async () => {
  const { locks, other, clock } = stage({ ttl: 1_000 }, { minTtl: 500 })
  const run = follow(locks.once('a', { within: 1_000 }, taking(clock, 900)))
  await clock.advance(900)
  expect(run.value).toMatchObject({ ran: true })
  expect((await other.inspect(markerOf('a'))).holders).toMatchObject([{ remaining: 500 }])
})

test('the name is held elsewhere: it says by whom, whatever the default wait of the locks', async () => {
  const { locks, other, store } = stage({ wait: 5_000 })
  const held = await other.acquire('a')
  const outcome = await locks.once('a', { within }, async () => 'never')
  expect(outcome).toMatchObject({ ran: false, why: 'held', holder: { owner: 'other', token: held.token } })
  expect(store.count('watch')).toBe(0)
})

describe('a replica that waits', () => {
  test('gets `ran` after a success', async () => {
    const { locks, other, clock } = stage()
    const first = follow(other.once('a', { within }, taking(clock, 1_000)))
    await clock.advance(0)
    const never = vi.fn<() => Promise<number>>(async () => 0)
    const second = follow(locks.once('a', { within, wait: 5_000 }, never))
    await clock.advance(1_000)
    expect(first.value).toMatchObject({ ran: true })
    expect(second.value).toMatchObject({ ran: false, why: 'ran', holder: { owner: 'other' } })
    expect(never).not.toHaveBeenCalled()
    expect((await locks.inspect('a')).holders).toEqual([])
  })

  test('runs the work after a failure', async () => {
    const { locks, other, clock } = stage()
    const first = follow(other.once('a', { within }, taking(clock, 1_000, true)))
    await clock.advance(0)
    const second = follow(locks.once('a', { within, wait: 5_000 }, async () => 'mine'))
    await clock.advance(1_000)
    expect(first.error).toMatchObject({ message: 'disk full' })
    expect(second.value).toEqual({ ran: true, result: 'mine' })
  })

  test('runs the work after a death', async () => {
    const { locks, other, clock } = stage()
    await other.acquire('a', { ttl: 1_000, heartbeat: false })
    const second = follow(locks.once('a', { within, wait: 5_000 }, async () => 'mine'))
    await clock.advance(1_000)
    expect(second.value).toEqual({ ran: true, result: 'mine' })
  })

  test('gets `held` after its wait', async () => {
    const { locks, other, clock } = stage()
    await other.acquire('a')
    const second = follow(locks.once('a', { within, wait: 5_000 }, async () => 'never'))
    await clock.advance(5_000)
    expect(second.value).toMatchObject({ ran: false, why: 'held', holder: { owner: 'other' } })
  })
})

test('a run that succeeds between the look and the acquire is found', async () => {
  const { locks, other, store, clock } = stage()
  const acquireLater = store.holdRequests('acquire')
  const never = vi.fn<() => Promise<number>>(async () => 0)
  const second = follow(locks.once('a', { within }, never))
  await clock.advance(0)
  await other.once('a', { within }, async () => 'first')
  acquireLater()
  await clock.advance(0)
  expect(second.value).toMatchObject({ ran: false, why: 'ran' })
  expect(never).not.toHaveBeenCalled()
})

test('the marker is there before the name is free', async () => {
  const { locks, other, store, clock } = stage()
  const releaseLater = store.holdRequests('release')
  const first = follow(locks.once('a', { within }, async () => 'done'))
  await clock.advance(0)
  expect(first.settled).toBe(false)
  expect((await other.inspect(markerOf('a'))).holders).toHaveLength(1)
  releaseLater()
  await clock.advance(0)
  expect(first.value).toMatchObject({ ran: true })
})

test('work that fails rejects with its error, and leaves no marker', async () => {
  const { locks, other } = stage()
  await expect(locks.once('a', { within }, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
  expect(await other.once('a', { within }, async () => 'again')).toEqual({ ran: true, result: 'again' })
})

describe('after a loss of the lease it rejects with the result, and leaves no marker', () => {
  test('that was seen before the work ended', async () => {
    const { locks, other, clock, store } = stage()
    const run = follow(locks.once('a', { within }, taking(clock, 5_000)))
    await clock.advance(0)
    await other.break('a')
    await clock.advance(5_000)
    expect(run.error).toMatchObject({ code: 'LEASE_LOST', result: 'done' })
    expect((await other.inspect(markerOf('a'))).holders).toEqual([])
    expect(store.count('acquire')).toBe(1)
  })

  test('that is only seen at the release', async () => {
    const { locks, other } = stage()
    const work = async (): Promise<string> => {
      await other.break('a')
      return 'done'
    }
    await expect(locks.once('a', { within }, work)).rejects.toMatchObject({ code: 'LEASE_LOST', result: 'done' })
    expect((await other.inspect(markerOf('a'))).holders).toEqual([])
  })

  test('by maxHold', async () => {
    const { locks, other, clock } = stage()
    const run = follow(locks.once('a', { within, maxHold: 1_000 }, taking(clock, 2_000)))
    await clock.advance(2_000)
    expect(run.error).toMatchObject({ code: 'MAX_HOLD', result: 'done' })
    expect((await other.inspect(markerOf('a'))).holders).toEqual([])
  })
})

describe('if the store fails', () => {
  test('to write the marker, it resolves, with a warning', async () => {
    const { locks, store } = stage()
    const run = await locks.once('unmarked', { within }, async () => {
      store.rule('acquire', refused)
      return 'done'
    })
    expect(run).toEqual({ ran: true, result: 'done' })
    expect(warnings).toHaveBeenCalledWith(
      '"unmarked" ran, but may run again too soon, because the store did not mark it: the store failed: connect ECONNREFUSED',
      { type: 'HoldfastWarning', code: 'HOLDFAST_NOT_MARKED' },
    )
  })

  test('to answer to the marker, it is asked again, and the run is over within 2 s', async () => {
    const { locks, other, store, clock } = stage()
    const run = follow(
      locks.once('unanswered', { within }, async () => {
        store.rule('acquire', unanswered)
        return 'done'
      }),
    )
    await clock.advance(2_000)
    expect(run.value).toEqual({ ran: true, result: 'done' })
    expect(warnings).toHaveBeenCalledTimes(1)
    expect(await other.once('unanswered', { within }, async () => 'never')).toMatchObject({ why: 'ran' })
  })

  test('to answer the first look only, the work runs', async () => {
    const { locks, store, clock } = stage()
    store.rule('inspect', silent)
    const run = follow(locks.once('a', { within }, async () => 'done'))
    await clock.advance(1_999)
    store.restore('inspect')
    await clock.advance(1)
    expect(run.value).toEqual({ ran: true, result: 'done' })
  })

  test('to say whether it ran, the work does not run, and the name is free again', async () => {
    const { locks, other, store, clock } = stage()
    store.rule('inspect', silent)
    const never = vi.fn<() => Promise<number>>(async () => 0)
    const run = follow(locks.once('a', { within }, never))
    await clock.advance(4_000)
    expect(run.error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('"a" ran lately') })
    expect(never).not.toHaveBeenCalled()
    expect(await other.tryAcquire('a')).toBeDefined()
  })

  test('altogether, it rejects within 4 s', async () => {
    const { locks, store, clock } = stage()
    store.ruleAll(lost)
    store.rule('inspect', silent)
    const run = follow(locks.once('a', { within }, async () => 0))
    await clock.advance(4_000)
    expect(run.error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await clock.advance(5_000)
    expect(clock.pending).toBe(0)
  })
})

test('an abort ends each step at once, and the work does not begin', async () => {
  for (const verb of ['inspect', 'acquire'] as const) {
    const { locks, store, clock } = stage()
    const controller = new AbortController()
    store.rule(verb, verb === 'inspect' ? silent : lost)
    const run = follow(locks.once('a', { within, signal: controller.signal }, async () => 0))
    await clock.advance(0)
    controller.abort('enough')
    await clock.advance(0)
    expect(run.error).toBe('enough')
  }
  const { locks, store, other, clock } = stage()
  const controller = new AbortController()
  store.rule('inspect', (forward, asked) => (store.count('inspect') > 1 ? silent(forward, asked) : forward()))
  const never = vi.fn<() => Promise<number>>(async () => 0)
  const run = follow(locks.once('a', { within, signal: controller.signal }, never))
  await clock.advance(0)
  controller.abort('enough')
  await clock.advance(0)
  expect(run.error).toBe('enough')
  expect(never).not.toHaveBeenCalled()
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('close ends each look for the marker at once, and the work does not begin', async () => {
  for (const looks of [0, 1]) {
    const { locks, other, store, clock } = stage()
    store.rule('inspect', (forward, asked) => (store.count('inspect') > looks ? silent(forward, asked) : forward()))
    const never = vi.fn<() => Promise<number>>(async () => 0)
    const run = follow(locks.once('a', { within }, never))
    await clock.advance(0)
    const closing = follow(locks.close())
    store.restore('inspect')
    await clock.advance(0)
    expect(run.error).toMatchObject({ code: 'CLOSED' })
    expect(closing.settled).toBe(true)
    expect(never).not.toHaveBeenCalled()
    expect(await other.tryAcquire('a')).toBeDefined()
  }
})

test('what cannot be kept for so long is refused before anything is asked', async () => {
  const work = async (): Promise<void> => {}
  for (const [guarantees, options, says] of [
    [
      { maxUnattended: 0 },
      { within },
      'within needs a store that keeps a lease without its process, and knows when it ends',
    ],
    [{ maxUnattended: 30_000 }, { within: 30_001 }, 'scripted keeps a lease without its process for at most 30000 ms'],
    [{ minTtl: 200 }, { within: 100 }, 'within is 100 ms; scripted needs at least 200'],
    [{}, { within: 0 }, 'within must be a whole number of milliseconds from 10 to 2147483647, not 0'],
    [{}, {}, form],
    [{}, { within, ttl: 1 }, 'ttl must be'],
    [{}, { within, every: 1 }, 'once has no option "every"'],
    [{}, undefined, form],
  ] as const) {
    const { locks, store } = stage({}, guarantees)
    await expect(locks.once('a', options as { within: number }, work)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(says),
    })
    expect(store.calls).toEqual([])
  }
  const { locks, store } = stage()
  await expect(locks.once('x'.repeat(250), { within }, work)).rejects.toThrow('at most 249 are allowed')
  await expect(locks.once(markerOf('a'), { within }, work)).rejects.toThrow('reserved for markers')
  await locks.close()
  await expect(locks.once('a', { within }, work)).rejects.toMatchObject({ code: 'CLOSED' })
  expect(store.calls).toEqual(['close'])
})

test('the types of once: within is needed, the work comes last and decides the result', async () => {
  const { locks } = stage()
  const work = async (lease: Lease): Promise<number> => lease.name.length
  const outcome = await locks.once('a', { within }, work)
  if (outcome.ran) expectTypeOf(outcome.result).toEqualTypeOf<number>()
  else {
    expectTypeOf(outcome.why).toEqualTypeOf<'held' | 'ran'>()
    expectTypeOf(outcome.holder).toEqualTypeOf<LeaseRecord | undefined>()
    if (outcome.why === 'ran') expectTypeOf(outcome.holder).toEqualTypeOf<LeaseRecord>()
  }
  // @ts-expect-error The options come before the work.
  await expect(locks.once('a', work, { within })).rejects.toThrow(form)
  // @ts-expect-error There are no options.
  await expect(locks.once('a', work)).rejects.toThrow(form)
  // @ts-expect-error There is no work.
  await expect(locks.once('a', { within })).rejects.toThrow(form)
  // @ts-expect-error There is no within.
  await expect(locks.once('a', { wait: 1 }, work)).rejects.toThrow(form)
  // @ts-expect-error A plain value may be a forgotten `return`.
  await locks.once('b', { within }, () => 1)
})
