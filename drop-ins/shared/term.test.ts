import { beforeEach, expect, test, vi } from 'vitest'
import { createLocks, type Locks } from '../../src/index.ts'
import type { Guarantees, Store } from '../../src/store.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { Holding, termOf } from './term.ts'

const LONGEST = 2 ** 31 - 1
const guarantees = { ...memory().guarantees, minTtl: 10, maxUnattended: 300 } satisfies Guarantees

test.each([
  [1, 10, false],
  [0, 10, false],
  [299.5, 300, false],
  [300, 300, false],
  [301, 300, true],
  [Number.MAX_SAFE_INTEGER, 300, true],
  [Number.POSITIVE_INFINITY, 300, true],
])('a duration of %d ms is granted as %d ms, renewed: %s', (duration, ttl, isRenewed) => {
  expect(termOf(duration, guarantees)).toEqual({ ttl, isRenewed })
})

test('a store without a limit grants up to 2^31 - 1 ms', () => {
  const unlimited = { ...guarantees, maxUnattended: undefined }
  expect(termOf(LONGEST, unlimited)).toEqual({ ttl: LONGEST, isRenewed: false })
  expect(termOf(9e15, unlimited)).toEqual({ ttl: LONGEST, isRenewed: true })
})

let store: Store
let locks: Locks

beforeEach(() => {
  vi.useFakeTimers()
  store = memory()
  locks = createLocks(store)
  return async () => {
    const closed = locks.close({ grace: 0 })
    await vi.advanceTimersByTimeAsync(1_000)
    await closed
    vi.useRealTimers()
  }
})

/** The lease is held until shortly before `duration` ms from now have passed, and lost after them. */
async function expectLostAfter(duration: number, { lease }: Holding): Promise<void> {
  await vi.advanceTimersByTimeAsync(duration - 100)
  lease.assertHeld()
  await vi.advanceTimersByTimeAsync(200)
  expect(await lease.ended).toBe('lost')
}

async function hold(duration: number): Promise<Holding> {
  const { ttl } = termOf(duration, guarantees)
  const holding = new Holding(await locks.acquire('a', { ttl, heartbeat: false }), guarantees, false)
  holding.last(duration)
  return holding
}

test('a lease that is longer than a grant is renewed, and ends with its duration', async () => {
  await expectLostAfter(900, await hold(900))
  await locks.acquire('a', { wait: 0 })
})

test('a lease of one grant is not renewed, however late the grant came', async () => {
  const renew = vi.spyOn(store, 'renew')
  const acquire = store.acquire.bind(store)
  vi.spyOn(store, 'acquire').mockImplementationOnce(async (...request) => {
    const grant = await acquire(...request)
    await vi.advanceTimersByTimeAsync(50)
    return grant
  })
  await expectLostAfter(250, await hold(300))
  expect(renew).not.toHaveBeenCalled()
})

test('the renewal for the rest of a duration is the last one, also if the grant is shorter', async () => {
  const holding = await hold(350)
  const renew = store.renew.bind(store)
  const renewed = vi.spyOn(store, 'renew').mockImplementation(async (...request) => {
    const grant = await renew(...request)
    return grant && { ...grant, ttl: grant.ttl * 0.9 }
  })
  await expectLostAfter(350, holding)
  expect(renewed).toHaveBeenCalledTimes(1)
})

test('a lease of one grant is let run out, so nobody is warned at the end of the process', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  const holding = await hold(300)
  process.emit('beforeExit', 0)
  expect(warned).not.toHaveBeenCalled()
  await holding.release()
  await hold(60_000)
  process.emit('beforeExit', 0)
  expect(warned.mock.calls[0]?.[0]).toContain('this process ends while it holds the lease "a"')
})

test('a lease that is extended beyond a grant is renewed from then on', async () => {
  const holding = await hold(200)
  await holding.extend(700)
  await expectLostAfter(700, holding)
})

test.each([60_000, 1_000])('a lease that could not be extended to %d ms lasts to its old end', async duration => {
  const holding = await hold(1_500)
  vi.spyOn(store, 'renew').mockRejectedValueOnce(new Error('refused'))
  await expect(holding.extend(duration)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expectLostAfter(1_500, holding)
})

test('a lease that could not be extended during a renewal lasts to its old end', async () => {
  const holding = await hold(900)
  const renew = store.renew.bind(store)
  const { promise: extended, resolve } = Promise.withResolvers<void>()
  const renewThenRefuse = vi.spyOn(store, 'renew').mockImplementationOnce((...request) => {
    renewThenRefuse.mockRejectedValueOnce(new Error('refused'))
    resolve(holding.extend(60_000))
    return renew(...request)
  })
  const outcome = extended.catch(reason => reason)
  await expectLostAfter(900, holding)
  expect(await outcome).toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('a released lease is not renewed', async () => {
  const holding = await hold(60_000)
  expect(await holding.release()).toBe('released')
  expect(await locks.tryAcquire('a')).toBeDefined()
})
