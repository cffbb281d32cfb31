import { expect, onTestFinished, test, vi } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { testLocks } from '../testing/index.ts'

const WELL = { ok: true, stuck: false, endingFor: 0, failures: 0, lastError: undefined }

/** Work that ends when the test says so. */
function untilTold({ signal }: Lease): Promise<void> {
  return new Promise(resolve => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())))
}

test('runs the work of one candidate at a time, and hands over when that is stopped', async () => {
  const { locks, other, clock } = stage()
  const log: string[] = []
  const work =
    (who: string) =>
    async (lease: Lease): Promise<void> => {
      log.push(`${who} leads`)
      await untilTold(lease)
      log.push(`${who} ends`)
    }
  const stop = new AbortController()
  const one = follow(locks.election('a', { note: 'one' }).run({ signal: stop.signal }, work('one')))
  await clock.advance(0)
  const second = other.election('a', { note: 'two' })
  void second.run(work('two'))
  await clock.advance(60_000)
  expect(log).toEqual(['one leads'])
  expect(await second.leader()).toMatchObject({ note: 'one' })
  stop.abort()
  await clock.advance(0) // the next is woken: no time needs to pass
  expect(log).toEqual(['one leads', 'one ends', 'two leads'])
  expect(one).toEqual({ settled: true, value: undefined, error: undefined })
  expect(await second.leader()).toMatchObject({ note: 'two', owner: 'other' })
})

test('stops the work when the lease is lost, and leads again only after it has ended', async () => {
  const locks = testLocks()
  const tokens: bigint[] = []
  let running = 0
  const election = locks.election('a')
  void election.run(async lease => {
    expect(running).toBe(0)
    running += 1
    tokens.push(lease.token)
    await untilTold(lease)
    running -= 1
  })
  await locks.advance(0)
  await locks.lose('a')
  await locks.advance(0)
  expect(tokens).toHaveLength(2)
  expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint)
  await locks.close()
  expect(election.health()).toEqual({ ...WELL, state: 'idle' })
})

test('work that throws is restarted after a pause that doubles, others may lead meanwhile, and each failure is reported', async () => {
  const { locks, other, clock } = stage()
  const events: unknown[] = []
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  const stop = subscribe('leadership_delayed', event => events.push(event))
  const starts: number[] = []
  const error = new Error('no database')
  void locks.election('a', { pause: 1_000, maxPause: 10_000 }).run(async () => {
    starts.push(clock.now())
    if (starts.length === 4) await new Promise<void>(resolve => clock.after(20_000, resolve)) // it ran well for a time
    throw error
  })
  await clock.advance(6_000)
  expect(starts).toEqual([0, 750, 2_250, 5_250])
  expect(events[2]).toEqual({ name: 'a', error, failures: 3, delay: 3_000 })
  await clock.advance(20_000)
  expect(events[3]).toEqual({ name: 'a', error, failures: 1, delay: 750 })
  expect(await other.tryAcquire('a')).toBeDefined()
  stop()
})

test('work that returns by itself releases the name, and is restarted after the pause', async () => {
  const { locks, other, clock } = stage()
  const starts: number[] = []
  void locks.election('a', { pause: 500 }).run(async () => starts.push(clock.now()))
  await clock.advance(0)
  await (await other.tryAcquire('a'))?.release()
  await clock.advance(1_000)
  expect(starts).toEqual([0, 500, 1_000])
})

test('resign ends the term, lets the next waiter lead, and campaigns again', async () => {
  const { locks, other, clock } = stage()
  const reasons: unknown[] = []
  const election = locks.election('a')
  void election.run(async lease => {
    await untilTold(lease)
    reasons.push(lease.signal.reason)
    await new Promise<void>(resolve => clock.after(100, resolve))
  })
  await clock.advance(0)
  const next = follow(other.acquire('a'))
  const resigned = follow(election.resign())
  await clock.advance(99)
  expect([resigned.settled, next.settled, election.health().state]).toEqual([false, false, 'ending'])
  await clock.advance(1)
  expect([resigned.settled, next.settled, election.health().state]).toEqual([true, true, 'waiting'])
  expect(reasons).toMatchObject([{ code: 'CLOSED', message: 'the leader of "a" resigned' }])
  await election.resign() // does not lead: nothing happens
  await next.value?.release()
  await clock.advance(1_000)
  expect(election.health().state).toBe('leading')
})

test('resign waits until the name is released, also when the work has just ended by itself', async () => {
  const { locks, clock, store } = stage()
  const election = locks.election('a')
  const release = store.holdRequests('release')
  void election.run(async () => {})
  await clock.advance(0)
  const resigned = follow(election.resign())
  await clock.advance(0)
  expect(resigned.settled).toBe(false)
  release()
  await clock.advance(0)
  expect(resigned.settled).toBe(true)
  expect(await election.leader()).toBeUndefined()
})

test('health reports that the process should be ended when work continues for longer than the grace', async () => {
  const locks = testLocks()
  const election = locks.election('a', { grace: 3_000 })
  expect(election.health()).toEqual({ ...WELL, state: 'idle' })
  await locks.holdAsOther('a').then(other => {
    void election.run(() => new Promise(() => {}))
    return locks.advance(0).then(() => {
      expect(election.health().state).toBe('waiting')
      return other.release()
    })
  })
  await locks.advance(0)
  expect(election.health()).toEqual({ ...WELL, state: 'leading' })
  void election.resign()
  await locks.advance(3_000)
  expect(election.health()).toEqual({ ...WELL, state: 'ending', endingFor: 3_000 })
  await locks.advance(1)
  const lastError = { code: 'STUCK', message: 'the work has ignored the end of its term for 3001 ms' }
  expect(election.health()).toEqual({
    ...WELL,
    ok: false,
    stuck: true,
    state: 'ending',
    endingFor: 3_001,
    lastError,
  })
})

test('run rejects with what the work threw after it was stopped, but not with the reason itself', async () => {
  for (const [thrown, expected] of [
    [new Error('not flushed'), 'not flushed'],
    [undefined, undefined],
  ]) {
    const { locks, clock } = stage()
    const stop = new AbortController()
    const run = follow(
      locks.election('a').run({ signal: stop.signal }, async lease => {
        await untilTold(lease)
        throw thrown ?? lease.signal.reason
      }),
    )
    await clock.advance(0)
    stop.abort()
    await clock.advance(0)
    expect(run.settled).toBe(true)
    expect((run.error as Error | undefined)?.message).toBe(expected)
  }
})

test('a candidate runs once at a time, and refuses invalid arguments', async () => {
  const locks = testLocks()
  const election = locks.election('a')
  void election.run(untilTold)
  await expect(election.run(untilTold)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(locks.election('b').run('x' as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  expect(() => locks.election('b', { grace: -1 })).toThrow(/grace must be/)
  expect(() => election.observe({ every: 0 })).toThrow(/every must be/)
  await locks.close()
  await expect(election.run(untilTold)).rejects.toMatchObject({ code: 'CLOSED' })
  expect(() => election.observe()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
})

test('observe yields the leader at first and at each change, in the order of tokens, through failures of the store', async () => {
  const { locks, other, clock, store } = stage()
  const seen: (LeaseRecord | undefined)[] = []
  const stop = new AbortController()
  const watching = follow(
    (async () => {
      for await (const leader of locks.election('a').observe({ signal: stop.signal, every: 100 })) seen.push(leader)
    })(),
  )
  await clock.advance(1_000)
  const first = await other.acquire('a', { note: 'first' })
  await clock.advance(1_000)
  store.rule('inspect', () => {
    throw new Error('connect ECONNREFUSED')
  })
  await clock.advance(1_000)
  store.restore('inspect')
  await first.release()
  const second = await other.acquire('a', { note: 'second' })
  await clock.advance(1_000)
  // A replica that lags behind shows the first once more.
  store.rule('inspect', async function* () {
    yield { name: 'a', state: 'held', owner: 'other', token: first.token, note: 'first', remaining: 5 }
  })
  await clock.advance(1_000)
  store.restore('inspect')
  await clock.advance(1_000)
  await second.release()
  await clock.advance(1_000)
  expect(seen.map(leader => leader?.note)).toEqual([undefined, 'first', 'second', undefined])
  stop.abort()
  await clock.advance(0)
  expect(watching).toEqual({ settled: true, value: undefined, error: undefined })
  expect(clock.pending).toBe(0)
})

test('a pause that is longer than 30 s needs no longest pause', async () => {
  const { locks, clock } = stage()
  const starts: number[] = []
  void locks.election('a', { pause: 60_000 }).run(async () => starts.push(clock.now()))
  await clock.advance(60_000)
  expect(starts).toEqual([0, 60_000])
})

test('the value of proclaim is visible to all, until the next term begins with the note of the election', async () => {
  const { locks, other, clock } = stage()
  const election = locks.election('a', { note: 'starting', pause: 1_000 })
  const seen: (string | undefined)[] = []
  const stop = new AbortController()
  void (async () => {
    for await (const leader of other.election('a').observe({ signal: stop.signal, every: 100 })) seen.push(leader?.note)
  })()
  await expect(election.proclaim('too early')).rejects.toMatchObject({ code: 'LEASE_LOST', leaseName: 'a' })
  void election.run(untilTold)
  await clock.advance(100)
  for (const value of ['serving', 'serving', 'draining']) {
    const proclaimed = election.proclaim(value)
    await clock.advance(0)
    await proclaimed
    expect((await other.election('a').leader())?.note).toBe(value)
    await clock.advance(200)
  }
  await expect(election.proclaim('x'.repeat(256))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  void election.resign()
  await clock.advance(2_000)
  expect(seen).toEqual([undefined, 'starting', 'serving', 'draining', undefined, 'starting'])
  stop.abort()
})
