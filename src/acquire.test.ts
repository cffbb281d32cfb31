import { expect, test } from 'vitest'
import { follow, lost, refused, stage } from '../test/scripted-store.ts'
import { LeaseError } from './errors.ts'

test.each([0, -5, Number.NaN, undefined])(
  'a store that says retryAfter %s is not asked in a hot loop',
  async retryAfter => {
    const { locks, clock, store } = stage()
    store.rule('acquire', async () => ({ held: false, retryAfter }))
    store.rule('watch', refused)
    const wait = follow(locks.acquire('a', { wait: 1_000 }))
    await clock.advance(1_000)
    expect(wait.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
    expect(store.count('acquire')).toBeGreaterThan(10)
    expect(store.count('acquire')).toBeLessThan(200)
  },
)

test.each([0, -5, Number.NaN])('a failing store that says retryAfter %s is asked ever less often', async retryAfter => {
  const { locks, clock, store } = stage()
  store.ruleAll(async () => {
    throw new LeaseError('STORE_UNAVAILABLE', 'starting', { retryAfter })
  })
  const wait = follow(locks.acquire('a', { wait: 5_000 }))
  await clock.advance(5_000)
  expect(wait.error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: 'starting' })
  expect(store.count('acquire')).toBeLessThan(20)
})

test('a store that does not answer is waited for no longer than the wait', async () => {
  const { locks, clock, store } = stage()
  store.ruleAll(lost)
  const wait = follow(locks.acquire('a', { wait: 100 }))
  await clock.advance(99)
  expect(wait.settled).toBe(false)
  await clock.advance(1)
  expect(wait.error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
})

test('a watch that cannot be armed does not make the wait longer', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  store.rule('watch', lost)
  const wait = follow(locks.acquire('a', { wait: 100 }))
  await clock.advance(100)
  expect(wait.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
})

test('a store that fails until shortly before the end of the wait is still asked then', async () => {
  const { locks, clock, store } = stage()
  store.ruleAll(refused)
  const wait = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(990)
  expect(wait.settled).toBe(false)
  store.mend('acquire')
  await clock.advance(10)
  expect(wait.value).toMatchObject({ name: 'a' })
})

test('a watch that failed is ended before the next is tried', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const signals: AbortSignal[] = []
  store.rule('watch', (_, signal) => {
    signals.push(signal)
    return signals.length < 4 ? lost(_, signal) : _()
  })
  const wait = follow(locks.acquire('a', { ttl: 1_000 }))
  await clock.advance(5_000)
  expect(signals.map(signal => signal.aborted)).toEqual([true, true, true, false])
  expect(wait.settled).toBe(false)
  const lease = await other.list('a')[Symbol.asyncIterator]().next()
  expect(lease.value).toMatchObject({ owner: 'other' })
})

test.each([
  ['nothing', undefined],
  ['a grant without a ttl', { held: true, token: 1n }],
  ['a grant for NaN ms', { held: true, token: 1n, ttl: Number.NaN }],
])('a store that answers %s grants nothing and counts as one that fails', async (_, answer) => {
  const { locks, clock, store } = stage()
  store.rule('acquire', async () => answer)
  const wait = follow(locks.acquire('a', { wait: 100 }))
  await clock.advance(200)
  expect(wait.error).toMatchObject({ name: 'LeaseError', code: 'STORE_UNAVAILABLE' })
})
