import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { LeaseError } from '../contract/errors.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { testLocks } from '../testing/index.ts'

let warnings: [code: string, message: string, detail: string | undefined][]

beforeEach(() => {
  warnings = []
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(((message: string, { code, detail }: never) => {
    // A lease of an earlier test may be collected at any time.
    if (code === 'HOLDFAST_LEASE_DROPPED') return
    warnings.push([code, message, detail])
  }) as never)
  return () => emit.mockRestore()
})

/** Work that ends when its signal aborts. */
function untilTold({ signal }: Lease): Promise<void> {
  return new Promise(resolve => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())))
}

function outcomes(): string[] {
  const all: string[] = []
  onTestFinished(subscribe('term_ended', ({ outcome }) => all.push(outcome)))
  return all
}

test('the first failure of each streak is a warning with the error and its stack', async () => {
  const { locks, clock } = stage()
  const error = new Error('no database')
  let fails = true
  void locks.election('a').run(async () => {
    if (fails) throw error
  })
  await clock.advance(10_000)
  const warning = [
    'HOLDFAST_TERM_FAILED',
    'the work of the leader of "a" failed; the next try is in 750 ms, and only onError gets further failures in a row: no database',
    error.stack,
  ]
  expect(warnings).toEqual([warning])
  fails = false
  await clock.advance(60_000)
  fails = true
  await clock.advance(10_000)
  expect(warnings, 'it fails again').toEqual([warning, warning])
})

test('onError gets each error and the number of failures in a row', async () => {
  const { locks, clock } = stage()
  const told: unknown[] = []
  let terms = 0
  const onError = (error: unknown, failures: number): unknown => told.push([error, failures])
  void locks.election('a', { pause: 100 }).run({ onError }, async () => {
    terms += 1
    // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
    if (terms !== 3) throw `${terms}`
  })
  await clock.advance(500)
  expect(told.slice(0, 3)).toEqual([
    ['1', 1],
    ['2', 2],
    ['4', 1],
  ])
})

test('an onError that throws or rejects ends nothing, and is a warning for each cause', async () => {
  for (const onError of [
    () => {
      throw new Error('no log')
    },
    () => Promise.reject(new Error('no network')),
  ]) {
    const { locks, clock } = stage()
    let terms = 0
    void locks.election('a').run({ onError }, async () => {
      terms += 1
      throw new Error('the work')
    })
    await clock.advance(10_000)
    expect(terms).toBeGreaterThan(3)
  }
  expect(warnings.filter(([code]) => code === 'HOLDFAST_ON_ERROR').map(([, message]) => message)).toEqual([
    'onError of the election "a" failed: no log',
    'onError of the election "a" failed: no network',
  ])
})

test('after maxFailures run rejects with the last error, health says so, and another run begins anew', async () => {
  const { locks, other, clock } = stage()
  const election = locks.election('a')
  let terms = 0
  const run = follow(
    election.run({ maxFailures: 3 }, async () => {
      terms += 1
      throw new Error(`the ${terms}th`)
    }),
  )
  await clock.advance(60_000)
  expect(run.error).toMatchObject({ message: 'the 3th' })
  expect(election.health()).toMatchObject({ ok: false, state: 'idle', failures: 3 })
  expect(await other.tryAcquire('a').then(lease => lease?.release()), 'the name is released').toBe('released')
  void election.run(untilTold)
  await clock.advance(0)
  expect(election.health()).toMatchObject({ ok: true, state: 'leading', failures: 0 })
})

test('health is not ok while the work fails, and says why without the text of the error', async () => {
  const { locks, clock } = stage()
  const election = locks.election('a')
  const errors = [
    Object.assign(new Error('postgres://app:secret@db refused'), { code: 'ECONNREFUSED' }),
    new TypeError('x is undefined'),
    Object.assign(new Error('no'), { code: 'password: secret' }),
    'secret',
    undefined,
    new Error('a driver', { cause: new LeaseError('STALE_TOKEN', 'secret', { token: 1n, highest: 2n }) }),
  ]
  const codes: unknown[] = []
  void election.run({ onError: () => codes.push(election.health().lastError) }, async () => {
    // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
    throw errors[codes.length]
  })
  for (const [index, code] of ['ECONNREFUSED', 'TypeError', 'Error', 'Error', 'Error', 'STALE_TOKEN'].entries()) {
    await clock.advance(750 * 2 ** (index - 1))
    expect(codes.at(-1)).toEqual({ code, message: `the work failed: ${code}` })
    expect(election.health()).toMatchObject({ ok: false, stuck: false, failures: index + 1, lastError: { code } })
  }
})

test('health is ok again once a term returns, or has led or waited for maxPause', async () => {
  for (const end of ['returns', 'leads', 'waits']) {
    const { locks, other, clock } = stage()
    const election = locks.election('a', { pause: 1_000, maxPause: 5_000 })
    let hasFailed = false
    void election.run(async lease => {
      if (!hasFailed) {
        hasFailed = true
        throw new Error('no database')
      }
      if (end === 'leads') await untilTold(lease)
    })
    await clock.advance(0)
    if (end === 'waits') await other.acquire('a')
    await clock.advance(749)
    expect(election.health()).toMatchObject({ ok: false, state: 'waiting', failures: 1 })
    await clock.advance(1)
    if (end !== 'returns') {
      const state = end === 'leads' ? 'leading' : 'waiting'
      await clock.advance(4_999)
      expect(election.health(), end).toMatchObject({ ok: false, state, failures: 1 })
      await clock.advance(1)
    }
    expect(election.health(), end).toMatchObject({ ok: true, failures: 0, lastError: undefined })
  }
})

test('an outage of the store makes a waiter not ok after a ttl, never stuck, and does not count for maxFailures', async () => {
  const { locks, other, clock, store } = stage({ ttl: 1_000 })
  const held = await other.acquire('a')
  const election = locks.election('a')
  const told: unknown[] = []
  const run = follow(election.run({ maxFailures: 1, onError: error => told.push(error) }, untilTold))
  await clock.advance(10_000)
  expect(election.health()).toMatchObject({ ok: true, state: 'waiting' })
  store.ruleAll(refused)
  await clock.advance(60_000)
  expect(election.health()).toMatchObject({
    ok: false,
    stuck: false,
    failures: 0,
    lastError: { code: 'STORE_UNAVAILABLE', message: 'the name was not acquired: STORE_UNAVAILABLE' },
  })
  store.restore('acquire', 'renew', 'annotate', 'release', 'watch', 'break')
  await clock.advance(30_000)
  expect(election.health(), 'the store answers that the name is held').toMatchObject({ ok: true, state: 'waiting' })
  await held.release()
  await clock.advance(0)
  expect(election.health()).toMatchObject({ ok: true, state: 'leading' })
  expect([run.settled, told, warnings]).toEqual([false, [], []])
})

test('an outage makes a leader not ok from its loss until the store answers again', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000 })
  const election = locks.election('a')
  void election.run(untilTold)
  await clock.advance(10_000)
  store.ruleAll(refused)
  await clock.advance(300)
  expect(election.health()).toMatchObject({ ok: true, state: 'leading' })
  await clock.advance(900) // it campaigns again, and for less than a ttl
  const lastError = {
    code: 'LEASE_LOST',
    message: 'the lease was not renewed in time: LEASE_LOST',
  }
  expect(election.health()).toMatchObject({ ok: false, stuck: false, state: 'waiting', failures: 0, lastError })
  store.restore('acquire', 'renew', 'annotate', 'release', 'watch', 'break')
  await clock.advance(5_000)
  expect(election.health()).toMatchObject({ ok: true, state: 'leading', lastError: undefined })
})

test('a lease that was broken, or reached maxHold, is not reported as an outage while its work ends', async () => {
  for (const maxHold of [undefined, 5_000]) {
    const { locks, other, clock } = stage()
    const election = locks.election('a', { grace: 3_000, maxHold })
    void election.run(async lease => {
      await untilTold(lease)
      await new Promise<void>(resolve => clock.after(3_000, resolve))
    })
    await clock.advance(0)
    if (!maxHold) await other.break('a')
    await clock.advance(maxHold ? 6_000 : 4_000) // the break is noticed at the next renewal
    expect(election.health()).toMatchObject({ ok: true, state: 'ending', lastError: undefined })
    await clock.advance(4_000)
    expect(election.health()).toMatchObject({ ok: true, state: 'leading', lastError: undefined })
  }
})

test('work that ignores the loss of its lease is stuck, and health says for how many whole milliseconds', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000 })
  const election = locks.election('a', { grace: 3_000 })
  void election.run(() => new Promise(() => {}))
  await clock.advance(0.25)
  store.ruleAll(refused)
  await clock.advance(1_000)
  const lastError = { code: 'LEASE_LOST', message: 'the lease was not renewed in time: LEASE_LOST' }
  expect(election.health()).toMatchObject({ ok: false, stuck: false, state: 'ending', lastError })
  await clock.advance(4_000)
  const { endingFor, ...health } = election.health()
  expect(health).toMatchObject({
    ok: false,
    stuck: true,
    lastError: { code: 'STUCK', message: `the work has ignored the end of its term for ${endingFor} ms` },
  })
  expect(endingFor % 1).toBe(0)
})

test('the delay after a failure is a whole number of milliseconds', async () => {
  const { locks, clock } = stage()
  const delays: number[] = []
  onTestFinished(subscribe('leadership_delayed', ({ delay }) => delays.push(delay)))
  void locks.election('a', { pause: 33 }).run(() => Promise.reject(new Error('no database')))
  await clock.advance(100)
  expect(delays.slice(0, 2)).toEqual([25, 50])
})

test('work that throws the loss of an earlier term has failed, so it is not tried again at once', async () => {
  const locks = testLocks()
  const ended = outcomes()
  let first: Lease | undefined
  const election = locks.election('a')
  void election.run(async lease => {
    if (first) first.assertHeld() // a mistake: the lease of the first term
    first = lease
    await untilTold(lease)
  })
  await locks.advance(0)
  await locks.lose('a')
  await locks.advance(700)
  expect(ended).toEqual(['lost', 'failed'])
  expect(election.health()).toMatchObject({ ok: false, failures: 1, lastError: { code: 'LEASE_LOST' } })
})

test('a term that is lost, at the end of maxHold too, is no failure', async () => {
  const locks = testLocks()
  const ended = outcomes()
  const election = locks.election('a', { maxHold: 5_000 })
  void election.run(async lease => {
    await untilTold(lease)
    if (ended.length === 1) throw lease.signal.reason
  })
  await locks.advance(0)
  await locks.lose('a')
  await locks.advance(20_000)
  expect(ended.length).toBeGreaterThan(3)
  expect(new Set(ended)).toEqual(new Set(['lost']))
  expect(election.health()).toMatchObject({ ok: true, failures: 0 })
  expect(warnings).toEqual([])
})

test('a candidate that was stopped, and whose lease was broken while its work ended, resolves and has not failed', async () => {
  const { locks, other, clock } = stage()
  const ended = outcomes()
  const stop = new AbortController()
  const run = follow(
    locks.election('a').run({ signal: stop.signal }, async lease => {
      await untilTold(lease)
      await new Promise<void>(resolve => clock.after(1_000, resolve))
    }),
  )
  await clock.advance(0)
  stop.abort()
  await other.break('a')
  await clock.advance(1_000)
  expect([run.settled, run.error, ended]).toEqual([true, undefined, ['lost']])
})

test('term_ended tells work that returned from terms that were stopped, also in a loop of lead', async () => {
  const { locks, clock } = stage()
  const ended = outcomes()
  const stop = new AbortController()
  const election = locks.election('a')
  let terms = 0
  const run = election.run({ signal: stop.signal }, async lease => {
    terms += 1
    if (terms > 1) await untilTold(lease)
  })
  await clock.advance(2_000)
  void election.resign()
  await clock.advance(2_000)
  stop.abort()
  await run
  expect(ended.splice(0)).toEqual(['returned', 'stopped', 'stopped'])
  const error = new Error('the body failed')
  const loop = follow(
    (async () => {
      for await (const term of locks.lead('a')) {
        if (ended.length === 0) continue
        if (ended.length === 2) throw error
        await term.release()
      }
    })(),
  )
  await clock.advance(2_000)
  // The error of a body ends the loop, so whoever runs the loop has it.
  expect([loop.error, ended]).toEqual([error, ['returned', 'stopped', 'returned']])
})

test('run refuses an onError that is no function, and maxFailures that is no count', async () => {
  const election = testLocks().election('a')
  const code = 'INVALID_ARGUMENT'
  await expect(election.run({ onError: 'log' as never }, untilTold)).rejects.toMatchObject({ code })
  for (const maxFailures of [0, 1.5, '3' as never])
    await expect(election.run({ maxFailures }, untilTold)).rejects.toMatchObject({ code })
})
