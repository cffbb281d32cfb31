import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { follow, lost, stage } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import { StoreLocks } from '../create-locks.ts'

test('a timeout for a name that these locks hold says so', async () => {
  const { locks, clock } = stage({ ttl: 5_000 })
  const outer = await locks.acquire('a')
  const inner = follow(locks.acquire('a', { wait: 1_000 }))
  await clock.advance(1_000)
  const since = new Date(clock.wall() - 1_000).toISOString()
  expect(inner.error).toMatchObject({
    code: 'BUSY',
    retryable: true,
    leaseName: 'a',
    holder: { owner: outer.owner, token: outer.token },
    message: `"a" was not acquired within 1000 ms: it is held by another call of these locks (${outer.owner}) since ${since}, for another 4000 ms unless renewed; if this call is inside it, leases are not re-entrant`,
  })
})

test('another process of the same owner does not count as this one', async () => {
  const { locks, server, clock } = stage({ owner: 'billing' })
  const twin = new StoreLocks(server, { owner: 'billing' }, { clock, random: () => 0.5 })
  await twin.acquire('a', { ttl: 5_000 })
  await locks.acquire('b')
  await expect(locks.acquire('a', { wait: 0 })).rejects.toMatchObject({
    code: 'BUSY',
    message: '"a" is held by billing, for another 5000 ms unless renewed',
  })
})

test('nor does another process of the same owner that took over after a break', async () => {
  const { locks, server, clock } = stage({ owner: 'billing' })
  const twin = new StoreLocks(server, { owner: 'billing' }, { clock, random: () => 0.5 })
  const lease = await locks.acquire('a')
  await twin.break('a')
  await twin.acquire('a')
  lease.assertHeld() // it has not learned of it yet
  await expect(locks.acquire('a', { wait: 0 })).rejects.toThrow('"a" is held by billing, for another')
})

test('two Locks in one process exclude each other, and by default name their process', async () => {
  const { locks, server, clock } = stage()
  const second = new StoreLocks(server, {}, { clock, random: () => 0.5 })
  const lease = await locks.acquire('a')
  expect(lease.owner).toMatch(new RegExp(`^${hostname()}:${process.pid}:[0-9a-f]{6}$`))
  await expect(second.acquire('a', { wait: 0 })).rejects.toThrow(`"a" is held by ${lease.owner}, for another`)
  expect(await second.tryAcquire('a')).toBeUndefined()
  await lease.release()
  expect((await second.tryAcquire('a'))?.owner).not.toBe(lease.owner)
})

test("tryAcquire that was aborted rejects with the reason, even if that is another claim's time-out", async () => {
  const { locks, clock, store } = stage()
  store.rule('acquire', lost)
  const reason = new LeaseError('BUSY', '"b" was not had')
  const controller = new AbortController()
  const attempt = follow(locks.tryAcquire('a', { signal: controller.signal }))
  await clock.advance(10)
  controller.abort(reason)
  await clock.advance(0)
  expect(attempt.error).toBe(reason)
})

test('tryAcquire sends one request, joins no queue and never overtakes waiters', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  expect(await locks.tryAcquire('a')).toBeUndefined()
  expect(store.calls).toEqual(['acquire'])
  expect((await other.inspect('a')).waiters).toEqual([])
  const wait = follow(other.acquire('a'))
  await clock.advance(0)
  const mend = store.holdRequests('acquire')
  const attempt = follow(locks.tryAcquire('a'))
  await held.release()
  mend()
  await clock.advance(0)
  expect(attempt).toMatchObject({ settled: true, value: undefined, error: undefined })
  expect(wait.value).toBeDefined()
})

test('the parameters of a claim come from the call, then from the defaults, then from Holdfast', async () => {
  const plain = stage()
  await plain.locks.acquire('a')
  expect(plain.store.claim).toMatchObject({ name: 'a', ttl: 10_000, note: '', queue: true })
  await plain.locks.tryAcquire('b')
  expect(plain.store.claim).toMatchObject({ name: 'b', queue: false })

  const chosen = stage({ ttl: 3_000, note: 'all', owner: 'me', wait: 0 })
  await chosen.locks.acquire('a')
  expect(chosen.store.claim).toMatchObject({ ttl: 3_000, note: 'all', owner: 'me', queue: false })
  await chosen.locks.acquire('b', { ttl: 4_000, note: 'one', owner: 'you', wait: 5 })
  expect(chosen.store.claim).toMatchObject({ ttl: 4_000, note: 'one', owner: 'you', queue: true })
})

test('no two claims have one id, and each is 128 bits in hexadecimal', async () => {
  const { locks, store } = stage()
  const ids = new Set<string>()
  for (let i = 0; i < 2_000; i += 1) {
    await locks.tryAcquire('a')
    const id = store.claim?.id ?? ''
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    ids.add(id)
  }
  expect(ids.size).toBe(2_000)
})

test('tokens rise from holder to holder, through release, expiry and break', async () => {
  const { locks, other, clock } = stage({ heartbeat: false })
  let last = 0n
  for (let i = 0; i < 20; i += 1) {
    const lease = await (i % 2 ? locks : other).acquire('a', { heartbeat: false })
    expect(lease.token).toBeGreaterThan(last)
    last = lease.token
    if (i % 3 === 0) await lease.release()
    else if (i % 3 === 1) await clock.advance(10_000)
    else {
      const token = await locks.break('a')
      expect(token).toBeGreaterThan(last)
      last = token ?? last
    }
  }
})

test('break of a free name resolves to undefined', async () => {
  const { locks } = stage()
  expect(await locks.break('a')).toBeUndefined()
})

test('break with a token takes nothing from whoever holds by now', async () => {
  const { locks, other } = stage()
  const before = await other.acquire('a')
  await before.release()
  const lease = await other.acquire('a')
  expect(await locks.break('a', { token: before.token })).toBeUndefined()
  expect((await locks.inspect('a')).holders[0]?.token).toBe(lease.token)
  expect(await locks.break('a', { token: lease.token })).toBeGreaterThan(lease.token)
  expect((await locks.inspect('a')).holders[0]).toBeUndefined()
})

test('break takes a shared name from all holders, or only from the one with a slot and a token', async () => {
  const { locks, other } = stage()
  const semaphore = other.semaphore('a', { limit: 5 })
  const [both, one] = [await semaphore.acquire({ permits: 2 }), await semaphore.acquire()]
  const held = async (): Promise<unknown> => (await locks.inspect('a')).holders.map(({ slots }) => slots)
  expect(await locks.break('a', { slot: 3 })).toBeUndefined()
  expect(await locks.break('a', { slot: 2, token: both.token })).toBeUndefined()
  expect(await held()).toEqual([[0, 1], [2]])
  expect(await locks.break('a', { slot: 1 })).toBeGreaterThan(one.token)
  expect(await held()).toEqual([[2]])
  await semaphore.acquire()
  expect(await locks.break('a')).toBeDefined()
  expect(await held()).toEqual([])
})

test('break of a slot, where each claim holds alone, takes the ticket of this number', async () => {
  const { locks, other } = stage({}, { sharing: 'exclusive', order: 'not promised' })
  const [first] = [await other.acquire('a'), await other.acquire('a#2')]
  expect(await locks.break('a', { slot: 1 })).toBeUndefined()
  expect(await locks.break('a', { slot: 2 })).toBeDefined()
  expect(await locks.break('a', { slot: 0 })).toBeGreaterThan(first.token)
})

test.each([
  ['a slot that is none', { slot: -1 }, 'slot must be a whole number from 0 to 2147483646, not -1'],
  ['a token that is no bigint', { token: 5 }, 'token must be a bigint'],
  ['an unknown option', { tokn: 5n }, 'break has no option'],
  ['a text', 'me', 'must be an object'],
])('break refuses %s', async (_, options, says) => {
  const { locks } = stage()
  const error = { code: 'INVALID_ARGUMENT', message: expect.stringContaining(says) }
  await expect(locks.break('a', options as never)).rejects.toMatchObject(error)
})

test('break wakes waiters', async () => {
  const { locks, other, clock } = stage()
  await other.acquire('a')
  const wait = follow(locks.acquire('a'))
  await clock.advance(0)
  const token = await other.break('a', { by: 'an operator' })
  await clock.advance(0)
  expect(wait.value?.token).toBeGreaterThan(token ?? 0n)
})

test('break and inspect of a store that does not answer reject within the limit of a request', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  store.ruleAll(lost)
  store.rule('inspect', () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }))
  const calls = [follow(locks.break('a')), follow(locks.inspect('a'))]
  await clock.advance(3_000)
  for (const call of calls) expect(call.error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(clock.pending).toBe(0)
})

test('a thousand waiters are served in order of arrival', async () => {
  const { locks, other, clock } = stage()
  const held = await other.acquire('a')
  const served: number[] = []
  const jobs: Promise<unknown>[] = []
  for (let i = 0; i < 1_000; i += 1) {
    jobs.push(locks.using('a', async () => served.push(i)))
    await Promise.resolve()
  }
  await clock.advance(100)
  await held.release()
  await clock.advance(0)
  await Promise.all(jobs)
  expect(served).toEqual(Array.from({ length: 1_000 }, (_, i) => i))
  expect(clock.pending).toBe(0)
})
