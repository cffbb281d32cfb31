import { channel } from 'node:diagnostics_channel'
import { expect, test } from 'vitest'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { subscribe } from './events.ts'
import type { LeaseEvents } from './lease-events.ts'

test('subscribe refuses an unknown event and an invalid listener', () => {
  const untyped = subscribe as (...given: unknown[]) => unknown
  expect(() => untyped('lease_aquired', () => {})).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('there is no event "lease_aquired", only acquire_began, lease_acquired, '),
    }),
  )
  expect(() => untyped('toString', () => {})).toThrow('there is no event "toString"')
  expect(() => untyped('lease_lost')).toThrow('the listener of lease_lost must be a function, not undefined')
})

/** What happens during `run`, by name. */
async function heard(run: () => Promise<unknown>): Promise<[keyof LeaseEvents, Record<string, unknown>][]> {
  const told: [keyof LeaseEvents, Record<string, unknown>][] = []
  const names = [
    'lease_acquired',
    'lease_busy',
    'heartbeat',
    'heartbeat_failed',
    'lease_lost',
    'lease_released',
    'release_failed',
  ] as const
  const stops = names.map(name => subscribe(name, event => told.push([name, event as Record<string, unknown>])))
  await run()
  for (const stop of stops) stop()
  return told
}

test('each step of waiting, renewal and release emits an event', async () => {
  const { locks, other, clock } = stage({ owner: 'me' })
  const held = await other.acquire('a', { heartbeat: false })
  const told = await heard(async () => {
    const wait = locks.acquire('a')
    await clock.advance(500)
    await held.release()
    const lease = await wait
    await clock.advance(3_000)
    await lease.release()
    expect(lease.token).toBeGreaterThan(held.token)
  })
  const holder = expect.objectContaining({ owner: 'other' })
  expect(told).toEqual([
    ['lease_busy', { name: 'a', owner: 'me', holder, ahead: 0 }],
    ['lease_busy', { name: 'a', owner: 'me', holder, ahead: 0 }],
    ['lease_released', { lease: held }],
    [
      'lease_acquired',
      { id: expect.any(String), lease: expect.objectContaining({ name: 'a' }), waited: 500, requests: 3 },
    ],
    ['heartbeat', { lease: expect.objectContaining({ name: 'a' }), latency: 0, margin: expect.any(Number) }],
    ['lease_released', { lease: expect.objectContaining({ name: 'a' }) }],
  ])
})

test('a heartbeat has the latency of its request and the margin that remained', async () => {
  const { locks, clock, store } = stage({ ttl: 9_000 })
  const lease = await locks.acquire('a')
  const answer = store.holdReplies('renew')
  await clock.advance(2_625 + 100) // the first beat is at 7/8 of a third
  const told = await heard(async () => {
    answer()
    await clock.advance(0)
  })
  expect(told).toEqual([['heartbeat', { lease, latency: 100, margin: 9_000 - 90 - 2 - 2_725 }]])
})

test('a lease that cannot be renewed reports each failure, then its loss once', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000 })
  const told = await heard(async () => {
    const lease = await locks.acquire('a')
    store.ruleAll(refused)
    await clock.advance(1_000)
    const release = follow(lease.release())
    await clock.advance(1_000)
    expect(release.value).toBe('lost')
  })
  const failed = told.filter(([name]) => name === 'heartbeat_failed')
  expect(failed.length).toBeGreaterThan(3)
  expect(failed[0]?.[1]).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } })
  expect(told.filter(([name]) => name !== 'heartbeat_failed').map(([name]) => name)).toEqual([
    'lease_acquired',
    'lease_lost',
    'release_failed',
  ])
})

test('an unconfirmed release is reported with its error', async () => {
  const { locks, clock, store } = stage({ owner: 'me' })
  const lease = await locks.acquire('a')
  store.rule('release', refused)
  const told = await heard(async () => {
    const release = follow(lease.release())
    await clock.advance(10_000)
    expect(release.value).toBe('unknown')
  })
  expect(told).toEqual([
    [
      'release_failed',
      { name: 'a', owner: 'me', lease, error: expect.objectContaining({ code: 'STORE_UNAVAILABLE' }) },
    ],
  ])
})

test('a call is reported before it returns, and its result under the same id', async () => {
  const { locks, clock, store } = stage({ owner: 'me' })
  const told: unknown[] = []
  const stops = [
    subscribe('acquire_began', ({ id, name, owner, ttl }) => told.push(['began', id, name, owner, ttl])),
    subscribe('not_acquired', ({ id, error }) => told.push(['failed', id, error])),
    subscribe('lease_acquired', ({ id }) => told.push(['acquired', id])),
    subscribe('release_began', ({ lease }) => told.push(['releasing', lease.name])),
  ]
  const acquiring = locks.acquire('a')
  const id = store.claim?.id
  expect(told).toEqual([['began', id, 'a', 'me', 10_000]])
  const lease = await acquiring
  expect(told.splice(0)).toEqual([expect.anything(), ['acquired', id]])
  expect(await locks.tryAcquire('a')).toBeUndefined()
  const busy = expect.objectContaining({ code: 'BUSY' })
  const other = store.claim?.id
  expect(told.splice(0)).toEqual([expect.arrayContaining(['began', other]), ['failed', other, busy]])
  const releasing = [lease.release(), lease.release()]
  expect(told.splice(0)).toEqual([['releasing', 'a']])
  await Promise.all(releasing)
  const lost = await locks.acquire('b', { heartbeat: false })
  await clock.advance(10_000)
  expect(await lost.release()).toBe('lost')
  expect(told.flat()).not.toContain('releasing')
  for (const stop of stops) stop()
})

test('the report of a call has what is documented, and no more of its claim', async () => {
  const { locks } = stage({ owner: 'me' })
  const told: unknown[] = []
  const stop = subscribe('acquire_began', event => told.push(event))
  await locks.tryAcquire('a', { note: 'a secret' })
  await locks.semaphore('b', { limit: 2 }).tryAcquire({ note: 'a secret' })
  const of = { id: expect.any(String), owner: 'me', ttl: 10_000 }
  expect(told).toStrictEqual([
    { ...of, name: 'a', kind: undefined },
    { ...of, name: 'b', kind: 'permit' },
  ])
  stop()
})

test('each failed request is reported, also when the next one succeeds', async () => {
  const { locks, clock, store } = stage({ owner: 'me' })
  const told: unknown[] = []
  const stop = subscribe('request_failed', ({ error, ...rest }) => told.push({ ...rest, code: error.code }))
  for (const verb of ['acquire', 'release'] as const) store.rule(verb, refused)
  const acquiring = locks.acquire('a')
  await clock.advance(5)
  store.restore('acquire')
  await clock.advance(1_000)
  const releasing = (await acquiring).release()
  await clock.advance(5)
  store.restore('release')
  await clock.advance(1_000)
  await releasing
  stop()
  const of = { name: 'a', owner: 'me', code: 'STORE_UNAVAILABLE' }
  expect(told).toEqual([
    { request: 'acquire', ...of },
    { request: 'release', ...of },
  ])
})

test.each([
  ['expired', {}],
  ['term', { heartbeat: false }],
  ['max_hold', { maxHold: 5_000 }],
] as const)('a loss is told with its reason: %s', async (reason, options) => {
  const { locks, clock, store } = stage()
  const reasons: string[] = []
  const stop = subscribe('lease_lost', event => reasons.push(event.reason))
  await locks.acquire('a', options)
  store.rule('renew', refused)
  await clock.advance(10_000)
  await locks.acquire('b')
  store.notifyLoss.get(store.claim?.id ?? '')?.()
  stop()
  expect(reasons).toEqual([reason, 'gone'])
})

test('every event is also a diagnostics channel, and an unsubscribed listener gets nothing', async () => {
  const { locks } = stage()
  const names: string[] = []
  const target = channel('holdfast:lease_acquired')
  const hear = (event: unknown): void => {
    names.push((event as LeaseEvents['lease_acquired']).lease.name)
  }
  target.subscribe(hear)
  const stop = subscribe('lease_acquired', hear)
  await locks.acquire('a')
  stop()
  stop()
  await locks.acquire('b')
  target.unsubscribe(hear)
  await locks.acquire('c')
  expect(names).toEqual(['a', 'a', 'b'])
})

test('S11: a break is reported with its author and token, and only if the name was held', async () => {
  const { locks, other } = stage({ owner: 'me' })
  const broken: LeaseEvents['lease_broken'][] = []
  const stop = subscribe('lease_broken', event => broken.push(event))
  await other.acquire('a', { heartbeat: false })
  const token = await locks.break('a', { by: 'the operator' })
  await locks.break('a')
  await other.acquire('a', { heartbeat: false })
  const later = await locks.break('a')
  stop()
  expect(broken).toEqual([
    { name: 'a', by: 'the operator', token },
    { name: 'a', by: 'me', token: later },
  ])
})
