import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { follow, lost, refused, type Stage, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'

/** A wait whose signal is aborted by a listener at its `busy`th busy answer, and so between two requests. */
async function abortedBetweenRequests(busy: number) {
  const staged = stage()
  const { locks, other, clock, store } = staged
  await other.acquire('a')
  if (busy === 1) store.rule('watch', lost)
  const controller = new AbortController()
  let answers = 0
  const stop = subscribe('lease_busy', () => {
    answers += 1
    if (answers === busy) controller.abort('enough')
  })
  const wait = follow(locks.acquire('a', { signal: controller.signal }))
  await clock.advance(0)
  stop()
  return { ...staged, wait }
}

test('an abort between a busy answer and the arming of the watch settles the wait at once', async () => {
  const { wait, store } = await abortedBetweenRequests(1)
  expect(wait).toMatchObject({ settled: true, error: 'enough' })
  expect(store.calls).toEqual(['acquire', 'release'])
})

test('an abort between a busy answer and the sleep until the next request settles the wait at once', async () => {
  const { wait, store } = await abortedBetweenRequests(2)
  expect(wait).toMatchObject({ settled: true, error: 'enough' })
  expect(store.calls).toEqual(['acquire', 'watch', 'acquire', 'release'])
})

/** Nothing of the claim is left: no position, no lease, no timer, no listener. */
async function expectNothingLeft({ clock, other, server }: Stage, signal: AbortSignal): Promise<void> {
  const {
    holders: [holder],
    waiters,
  } = await other.inspect('a')
  expect(waiters).toEqual([])
  if (holder) await other.break('a')
  const probe = { name: 'a', id: 'x', owner: '', ttl: 10, note: '', queue: false }
  expect(await server.acquire(probe, new AbortController().signal)).toMatchObject({ held: true })
  expect(getEventListeners(signal, 'abort')).toEqual([])
  await clock.advance(20_000)
  expect(clock.pending).toBe(0)
}

test('a signal that has aborted rejects with its reason, and the store is not asked', async () => {
  const staged = stage()
  const reason = new Error('shutdown')
  const options = { signal: AbortSignal.abort(reason) }
  await expect(staged.locks.acquire('a', options)).rejects.toBe(reason)
  await expect(staged.locks.tryAcquire('a', options)).rejects.toBe(reason)
  await expect(staged.locks.using('a', options, async () => 1)).rejects.toBe(reason)
  await expect(staged.locks.acquire('a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  expect(staged.store.calls).toEqual([])
})

test.each([undefined, 0, 'text', { code: 7 }, new Error('x')])(
  'a wait that is aborted rejects with the reason %o untouched',
  async reason => {
    const { locks, other, clock } = stage()
    await other.acquire('a')
    const controller = new AbortController()
    const wait = follow(locks.acquire('a', { signal: controller.signal }))
    await clock.advance(5)
    controller.abort(reason)
    await clock.advance(0)
    expect(wait.settled).toBe(true)
    expect(wait.error).toBe(controller.signal.reason)
  },
)

test.each([
  ['its first request is under way', 'acquire', false],
  ['its watch is being armed', 'watch', true],
  ['it sleeps until the next request', undefined, true],
] as const)('an abort of a wait while %s settles it at once and leaves nothing', async (_, held, taken) => {
  const staged = stage()
  const { locks, other, clock, store } = staged
  if (taken) await other.acquire('a', { heartbeat: false })
  if (held) store.rule(held, lost)
  const { signal, abort } = controlled()
  const wait = follow(locks.acquire('a', { signal }))
  await clock.advance(100)
  abort('enough')
  await clock.advance(0)
  expect(wait.error).toBe('enough')
  await expectNothingLeft(staged, signal)
})

test('a request that arrives after its wait was aborted and withdrawn is refused', async () => {
  const staged = stage()
  const { locks, clock, store } = staged
  const deliver = store.holdRequests('acquire')
  const { signal, abort } = controlled()
  const wait = follow(locks.acquire('a', { signal }))
  await clock.advance(100)
  abort('enough')
  await clock.advance(100)
  expect(wait.error).toBe('enough')
  deliver()
  await clock.advance(0)
  await expectNothingLeft(staged, signal)
})

test('a grant whose answer arrives in the same turn as the abort, or later, is withdrawn', async () => {
  const outcomes = new Set<string>()
  for (let turns = -1; turns < 20; turns += 1) {
    const staged = stage()
    const { locks, clock, store } = staged
    const answer = store.holdReplies('acquire')
    const { signal, abort } = controlled()
    const wait = follow(locks.acquire('a', { signal }))
    await clock.advance(100)
    if (turns < 0) abort('enough')
    answer()
    for (let i = 0; i < turns; i += 1) await Promise.resolve()
    abort('enough')
    await clock.advance(0)
    // It is either given before, and then kept, or aborted and withdrawn.
    outcomes.add(`${wait.value ? 'given' : 'aborted'} after ${store.count('release')} releases`)
    if (wait.value) {
      wait.value.assertHeld()
      expect(store.count('release')).toBe(0)
      await wait.value.release()
    } else expect(wait.error).toBe('enough')
    await expectNothingLeft(staged, signal)
  }
  // Unsettled while its answer is awaited, known to be held in the few turns after that.
  expect([...outcomes].sort()).toEqual([
    'aborted after 1 releases',
    'aborted after 2 releases',
    'given after 0 releases',
  ])
})

test('a queue request that arrives after its wait was aborted gets no position', async () => {
  const staged = stage()
  const { locks, other, clock, store } = staged
  await other.acquire('a')
  const { signal, abort } = controlled()
  const wait = follow(locks.acquire('a', { signal }))
  await clock.advance(1_000)
  const deliver = store.holdRequests('acquire')
  await clock.advance(1_000) // it asks every third of 5 s
  expect(store.count('acquire')).toBe(3)
  abort('enough')
  await clock.advance(0)
  expect(wait.error).toBe('enough')
  expect(store.count('release')).toBe(2) // it left the queue, then got the answer gone
  deliver()
  await clock.advance(0)
  expect((await other.inspect('a')).waiters).toEqual([])
})

test('an abort after the grant does not affect the lease', async () => {
  const { locks, clock } = stage()
  const { signal, abort } = controlled()
  const lease = await locks.acquire('a', { signal })
  expect(getEventListeners(signal, 'abort')).toEqual([])
  abort('enough')
  await clock.advance(30_000)
  expect(lease.signal.aborted).toBe(false)
  lease.assertHeld()
})

test('the withdrawal of an aborted wait fails silently when the store is gone', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const failed: string[] = []
  const stop = subscribe('release_failed', ({ error }) => failed.push(error.code))
  const { signal, abort } = controlled()
  const wait = follow(locks.acquire('a', { signal }))
  await clock.advance(100)
  store.ruleAll(refused)
  abort('enough')
  await clock.advance(5_000)
  stop()
  expect(wait.error).toBe('enough')
  expect(failed).toEqual(['STORE_UNAVAILABLE'])
})

test('a store may throw when its request is aborted', async () => {
  const { locks, clock, store } = stage()
  store.rule('acquire', (_, signal) => {
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason))
    return promise
  })
  const { signal, abort } = controlled()
  const wait = follow(locks.acquire('a', { signal }))
  await clock.advance(100)
  abort('enough')
  await clock.advance(0)
  expect(wait.error).toBe('enough')
})

function controlled(): { signal: AbortSignal; abort: (reason: unknown) => void } {
  const controller = new AbortController()
  return { signal: controller.signal, abort: reason => controller.abort(reason) }
}
