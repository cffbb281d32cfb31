import { expect, test } from 'vitest'
import { follow, lost, refused, stage, unanswered } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'

test.each([0, -5, Number.NaN, undefined])(
  'a store that says retryAfter %s is not asked in a hot loop',
  async retryAfter => {
    const { locks, clock, store } = stage()
    store.rule('acquire', async () => ({ held: false, retryAfter }))
    store.rule('watch', refused)
    const wait = follow(locks.acquire('a', { wait: 1_000 }))
    await clock.advance(1_000)
    expect(wait.error).toMatchObject({ code: 'BUSY' })
    expect(store.count('acquire')).toBeGreaterThan(10)
    expect(store.count('acquire')).toBeLessThan(200)
  },
)

test.each([-5, Number.NaN])('S12: a wait ends in time over a store that says that %s are ahead', async ahead => {
  const { locks, clock, store } = stage()
  store.rule('acquire', async () => ({ held: false, retryAfter: 5_000, ahead }))
  const wait = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(1_000)
  expect(wait.error).toMatchObject({ code: 'BUSY' })
  expect(store.count('acquire')).toBeLessThan(20)
})

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

test('an unresponsive store does not extend the wait', async () => {
  const { locks, clock, store } = stage()
  store.ruleAll(lost)
  const wait = follow(locks.acquire('a', { wait: 100 }))
  await clock.advance(99)
  expect(wait.settled).toBe(false)
  await clock.advance(1)
  expect(wait.settled).toBe(true)
})

test('a wait that ends before the first answer says that the name was not acquired, not that the store fails', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  store.ruleAll(lost)
  const [short, long] = [1_000, 8_000].map(wait => follow(locks.acquire('a', { wait })))
  await clock.advance(8_000)
  expect(short?.error).toMatchObject({ code: 'BUSY' })
  expect(long?.error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('within 3000 ms') })
})

test('a try whose first request has no answer asks once more with the same id, within its time', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  store.rule('acquire', unanswered)
  const trying = follow(locks.tryAcquire('a'))
  await clock.advance(1_399)
  const {
    holders: [holder],
  } = await other.inspect('a')
  store.restore('acquire')
  await clock.advance(1)
  expect(trying.value?.token).toBe(holder?.token)
  store.ruleAll(lost)
  const failing = follow(locks.tryAcquire('b'))
  await clock.advance(1_999)
  expect(failing.settled).toBe(false)
  await clock.advance(1)
  expect(failing.error).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('(asked 2x in 2000 ms); if it granted'),
  })
  expect(store.count('acquire')).toBe(4)
})

test('a store that fails until shortly before the end of the wait is still asked once more', async () => {
  const { locks, clock, store } = stage()
  store.ruleAll(refused)
  const wait = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(990)
  expect(wait.settled).toBe(false)
  store.restore('acquire')
  await clock.advance(10)
  expect(wait.value).toMatchObject({ name: 'a' })
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

test('a retry after a lost reply gets the same lease with the same token', async () => {
  const { locks, other, clock, store } = stage({ ttl: 9_000 })
  store.rule('acquire', unanswered)
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(2_999)
  const {
    holders: [holder],
  } = await other.inspect('a')
  store.restore('acquire')
  await clock.advance(50)
  expect(acquiring.value?.token).toBe(holder?.token)
  expect(acquiring.value?.remaining).toBeGreaterThan(8_800)
})

test('a grant whose answer comes after its ttl is no lease: the claim asks again', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  const answer = store.holdReplies('acquire')
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(0)
  answer()
  const blocked = clock.block(2_970) // the answer is there when the event loop continues, after the deadline
  store.restore('acquire')
  await blocked
  expect(acquiring.settled).toBe(false)
  await clock.advance(20)
  expect(store.count('acquire')).toBe(2)
  expect(acquiring.value?.remaining).toBeGreaterThan(2_900)
})

test('without a wait a late grant is reported as an unavailable store, and withdrawn', async () => {
  const { locks, other, clock, store } = stage({ ttl: 3_000 })
  const answer = store.holdReplies('acquire')
  const attempt = follow(locks.tryAcquire('a'))
  await clock.advance(0)
  answer()
  await clock.block(2_980)
  expect(attempt.error).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('the store granted 3000 ms, and its answer took 2980 ms'),
  })
  expect((await other.inspect('a')).holders[0]).toBeUndefined()
})

test('an unresponsive store is retried for one ttl, then given up', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  store.ruleAll(lost)
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(2_999)
  expect(acquiring.settled).toBe(false)
  await clock.advance(2_000)
  expect(acquiring.error).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    leaseName: 'a',
    retryable: true,
    cause: { code: 'OUTCOME_UNKNOWN' },
    message: expect.stringMatching(
      /^the store did not answer within 1000 ms: check its address.* \(asked 3x in 3\d\d\d ms\); .* "a" .* within 3000 ms$/,
    ),
  })
})

test('a last request that was cut short does not hide why the store failed', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  store.ruleAll(refused)
  const acquiring = follow(locks.acquire('a', { wait: 1_500 }))
  await clock.advance(1_400)
  store.ruleAll(lost)
  await clock.advance(200)
  expect(acquiring.error).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/^the store failed: connect ECONNREFUSED \(.* if it granted "a" nevertheless, /),
  })
})

test('a store that is back within one ttl is waited for', async () => {
  const { locks, clock, store } = stage()
  store.ruleAll(refused)
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(9_000)
  store.restore('acquire')
  await clock.advance(1_000)
  expect(acquiring.settled).toBe(true)
  expect(acquiring.value?.name).toBe('a')
})

test('the ttl for a store that does not answer counts from the first request without an answer', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  store.rule('acquire', () => Promise.resolve({ held: false, retryAfter: 4_900, ahead: 0 }))
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(4_800)
  store.ruleAll(refused)
  await clock.advance(2_900)
  store.restore('acquire')
  await clock.advance(1_000)
  expect(acquiring.value?.name).toBe('a')
})

test('a process that was paused for longer than a ttl asks again', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  store.ruleAll(lost)
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(500)
  await clock.block(60_000)
  expect(acquiring.settled).toBe(false)
  store.restore('acquire')
  await clock.advance(1_000)
  expect(acquiring.value?.name).toBe('a')
})

test('a process that was paused between two requests for longer than a ttl asks again', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  store.ruleAll(refused)
  const acquiring = follow(locks.acquire('a'))
  await clock.advance(0)
  await clock.block(60_000)
  expect(store.count('acquire')).toBe(2)
  expect(acquiring.settled).toBe(false)
  store.restore('acquire')
  await clock.advance(1_000)
  expect(acquiring.value?.name).toBe('a')
})

test('a permanent error ends the wait at once', async () => {
  const { locks, store } = stage()
  const error = new LeaseError('DRIVER_MISSING', 'npm install ioredis')
  store.rule('acquire', () => Promise.reject(error))
  await expect(locks.acquire('a')).rejects.toBe(error)
  expect(store.count('acquire')).toBe(1)
})

test('a store that reports when it serves again is waited for only if the wait is long enough', async () => {
  const { locks, clock, store } = stage({ ttl: 3_000 })
  const error = new LeaseError('STORE_UNAVAILABLE', 'votes in 8 s', { retryAfter: 8_000 })
  store.rule('acquire', () => Promise.reject(error))
  const patient = follow(locks.acquire('a'))
  await expect(locks.acquire('b', { wait: 5_000 })).rejects.toBe(error)
  await clock.advance(7_999 + 8_000)
  store.restore('acquire')
  expect(store.count('acquire')).toBe(3)
  await clock.advance(1)
  expect(patient.value?.name).toBe('a')
})

test('a wait that ends while the store fails reports the last known holder', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a')
  const wait = follow(locks.acquire('a', { wait: 4_000 }))
  await clock.advance(1_000)
  store.ruleAll(refused)
  await clock.advance(3_000)
  expect(wait.error).toMatchObject({ code: 'BUSY', holder: { owner: 'other' } })
})

test('a wait that times out leaves the queue, and reports the holder and its remaining time', async () => {
  const { locks, other, clock } = stage()
  const { token } = await other.acquire('a', { ttl: 60_000, note: 'deploy' })
  const wait = follow(locks.acquire('a', { wait: 250 }))
  await clock.advance(249)
  expect(wait.settled).toBe(false)
  await clock.advance(1)
  expect(wait.error).toMatchObject({
    code: 'BUSY',
    message: '"a" was not acquired within 250 ms: it is held by other, for another 59750 ms unless renewed',
    holder: { name: 'a', state: 'held', owner: 'other', note: 'deploy', token, remaining: 59_750 },
  })
  expect((await other.inspect('a')).waiters).toEqual([])
})

test('time that jumps past the end of a wait ends it after one more request', async () => {
  const { locks, other, clock, store } = stage()
  await other.acquire('a', { ttl: 1_000_000 })
  const wait = follow(locks.acquire('a', { wait: 5_000 }))
  await clock.advance(0)
  const asked = store.count('acquire')
  await clock.block(600_000)
  expect(wait.error).toMatchObject({ code: 'BUSY' })
  expect(store.count('acquire')).toBe(asked + 1)
})

test('the ttl for which an unresponsive store is retried counts from its last answer', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(60_000)
  store.ruleAll(refused)
  await clock.advance(6_000)
  store.restore('acquire', 'watch')
  await clock.advance(1_000)
  await held.release()
  await clock.advance(0)
  expect(wait.value?.name).toBe('a')
})

test('the last request of a wait has a short time to be answered', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('watch', refused)
  const wait = follow(locks.acquire('a', { wait: 500 }))
  await clock.advance(100)
  store.rule('acquire', async forward => {
    await new Promise<void>(resolve => clock.after(40, resolve))
    return forward()
  })
  await held.release()
  await clock.advance(439)
  expect(wait.settled).toBe(false)
  await clock.advance(1)
  expect(wait.value?.name).toBe('a')
})
