import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { follow } from '../../test/scripted-store.ts'
import type { Lease } from '../contract/lease.ts'
import { type TestLocks, testLocks } from './index.ts'

/** Jest also fakes these. Vitest does so only in a thread, because its own messages need them. */
function fakeTicks(): () => void {
  const waiting: (() => void)[] = []
  const nextTick = vi.spyOn(process, 'nextTick').mockImplementation((action, ...given) => {
    waiting.push(() => action(...given))
  })
  const microtask = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation(action => waiting.push(action))
  return () => {
    nextTick.mockRestore()
    microtask.mockRestore()
    for (const action of waiting) action()
  }
}

describe.each([
  ['with the timers of the process', false, false],
  ["under Vitest's fake timers", true, false],
  ['with nextTick and queueMicrotask also faked', true, true],
])('testLocks %s', (_, timers, ticks) => {
  let locks: TestLocks
  let restore = (): void => {}

  beforeEach(() => {
    if (timers) vi.useFakeTimers()
    if (ticks) restore = fakeTicks()
    locks = testLocks()
  })

  afterEach(() => {
    restore()
    vi.useRealTimers()
  })

  test('renews its leases, however much time passes', async () => {
    const lease = await locks.acquire('a', { ttl: 1_000 })
    await locks.advance(60_000)
    lease.assertHeld()
    expect(await locks.inspect('a')).toMatchObject({ holders: [{ token: lease.token }] })
    await lease.release()
  })

  test('a lease without heartbeat ends at its ttl', async () => {
    const lease = await locks.acquire('a', { ttl: 1_000, heartbeat: false })
    await locks.advance(987)
    lease.assertHeld()
    await locks.advance(1)
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  })

  test('assertHeld is right at once after block', async () => {
    const lease = await locks.acquire('a', { ttl: 1_000 })
    const blocked = locks.block(2_000)
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
    await blocked
  })

  test('a name that another holds can be waited for', async () => {
    const other = await locks.holdAsOther('a', { ttl: 2_000, note: 'deploy', owner: 'host 7' })
    expect(await locks.tryAcquire('a')).toBeUndefined()
    const wait = follow(locks.acquire('a'))
    await locks.advance(60_000)
    expect(wait.settled).toBe(false)
    expect(await Array.fromAsync(locks.list())).toMatchObject([
      { owner: 'host 7', note: 'deploy' },
      { state: 'waiting' },
    ])
    await other.release()
    await locks.advance(0)
    expect(wait.value?.token).toBeGreaterThan(other.token)
  })

  test('a wait ends after its limit', async () => {
    await locks.holdAsOther('a')
    const wait = follow(locks.acquire('a', { wait: 5_000 }))
    await locks.advance(4_999)
    expect(wait.settled).toBe(false)
    await locks.advance(1)
    expect(wait.error).toMatchObject({ code: 'BUSY', holder: { owner: 'other' } })
  })

  test('lose ends a lease and notifies its holder at once', async () => {
    const reasons: unknown[] = []
    const work = async ({ signal }: Lease): Promise<string> => {
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      await locks.lose('a')
      return 'done'
    }
    await expect(locks.using('a', work)).rejects.toMatchObject({ code: 'LEASE_LOST', result: 'done' })
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
    expect(await locks.tryAcquire('a')).toBeDefined()
  })

  test('lose ends the oldest permit of a name, and leaves the others', async () => {
    const semaphore = locks.semaphore('a', { limit: 3 })
    const [first, second] = [await semaphore.acquire({ permits: 2 }), await semaphore.acquire()]
    await locks.lose('a')
    expect(first.signal.reason).toMatchObject({ code: 'LEASE_LOST', message: expect.stringContaining('permit') })
    second.assertHeld()
    expect(await semaphore.tryAcquire({ permits: 2 })).toMatchObject({ slots: [0, 1] })
  })

  test('derived locks share the store, its failures and its losses', async () => {
    const locks = testLocks({ ttl: 10_000 })
    const derived = locks.with({ ttl: 5_000 })
    const lease = await derived.acquire('a')
    await derived.advance(20_000)
    lease.assertHeld()
    await locks.lose('a')
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    const restoreStore = derived.failStore()
    await expect(locks.tryAcquire('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    restoreStore()
    await derived.close()
    await (await locks.acquire('a')).release()
    await locks.close()
  })

  test('lose works while the store fails, and during a renewal', async () => {
    const lease = await locks.acquire('a')
    const restoreStore = locks.failStore()
    const extension = follow(lease.extend())
    await locks.lose('a')
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(extension.settled).toBe(true)
    await expect(locks.inspect('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    restoreStore()
    expect((await locks.inspect('a')).holders[0]).toBeUndefined()
  })

  test('fails, and is restored', async () => {
    const lease = await locks.acquire('a', { ttl: 3_000 })
    const restoreStore = locks.failStore()
    const attempt = follow(locks.acquire('b', { wait: 500 }))
    await locks.advance(2_000)
    expect(attempt.error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    restoreStore()
    await locks.advance(60_000)
    lease.assertHeld()
    locks.failStore()
    await locks.advance(3_000)
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  })

  test('a failure that began later goes on', async () => {
    const restoreStore = locks.failStore()
    locks.failStore(new Error('READONLY'))
    restoreStore()
    await expect(locks.inspect('a')).rejects.toMatchObject({ cause: { message: 'READONLY' } })
  })

  test('fails with the error of the test', async () => {
    locks.failStore(new Error('READONLY'))
    const attempt = follow(locks.tryAcquire('a'))
    await locks.advance(0)
    expect(attempt.error).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { message: 'READONLY' } })
  })

  test('closes without an advance, also while the store fails', async () => {
    const lease = await locks.acquire('a')
    const body = follow(locks.using('b', ({ signal }) => new Promise((_, no) => signal.addEventListener('abort', no))))
    await locks.holdAsOther('c')
    const wait = follow(locks.acquire('c'))
    await locks.advance(0)
    locks.failStore()
    await locks.close({ grace: 1_000 })
    expect(lease.signal.reason).toMatchObject({ code: 'CLOSED' })
    expect(wait.error).toMatchObject({ code: 'CLOSED' })
    expect(body.settled).toBe(true)
  })

  test('closes at once by default and when it is disposed of', async () => {
    const lease = await locks.acquire('a')
    await locks[Symbol.asyncDispose]()
    expect(lease.signal.reason).toMatchObject({ code: 'CLOSED' })
    expect(lease.remaining).toBeGreaterThan(9_800)
    await expect(locks.acquire('b')).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

test('each testLocks has its own names, and an owner that says test', async () => {
  const one = await testLocks().acquire('a')
  const two = await testLocks({ owner: 'me' }).acquire('a')
  expect([one.owner, two.owner]).toEqual([`test:${process.pid}`, 'me'])
  expect(one.token).toBe(two.token)
})

test('a loss or a hold that is impossible is refused with what to do first', async () => {
  const locks = testLocks()
  await expect(locks.lose('a')).rejects.toThrow(
    'these locks do not hold "a": acquire it first, or await advance(0) after the call that does',
  )
  await expect((locks.lose as (...given: unknown[]) => Promise<void>)('a', 5)).rejects.toThrow('takes nothing else')
  await locks.acquire('a')
  await expect(locks.holdAsOther('a')).rejects.toMatchObject({
    code: 'BUSY',
    message: `"a" is held by test:${process.pid}: release it first`,
  })
  await expect(locks.advance(Number.NaN)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('these locks can acquire an expired lease of another at once', async () => {
  const locks = testLocks()
  const other = await locks.holdAsOther('a', { heartbeat: false, ttl: 1_000 })
  const wait = follow(locks.acquire('a'))
  await locks.advance(1_000)
  expect(wait.settled).toBe(true)
  expect(() => other.assertHeld()).toThrow('its term ended')
})

test('another process holds permits, reads, or holds several names', async () => {
  const locks = testLocks()
  const permits = await locks.other.semaphore('api', { limit: 2 }).acquire({ permits: 2 })
  await locks.other.readWrite('prices').reader.acquire()
  await locks.other.all(['a', 'b']).acquire()
  const refused = [
    locks.semaphore('api', { limit: 2 }).tryAcquire(),
    locks.readWrite('prices').writer.tryAcquire(),
    locks.tryAcquire('b'),
  ]
  await locks.advance(1_000)
  expect(await Promise.all(refused)).toEqual([undefined, undefined, undefined])
  await permits.release()
  const permit = locks.semaphore('api', { limit: 2 }).tryAcquire()
  await locks.advance(1_000)
  expect((await permit)?.slots).toHaveLength(1)
  await locks.close()
})
