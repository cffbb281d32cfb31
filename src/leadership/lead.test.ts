import { expect, onTestFinished, test } from 'vitest'
import { follow, refused, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { testLocks } from '../testing/index.ts'

/** Resolves when the signal of the lease aborts. */
function told({ signal }: Lease): Promise<void> {
  return new Promise(resolve => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())))
}

test('leads while the body runs, and releases the name when it is left', async () => {
  for (const leave of ['break', 'return', 'throw'] as const) {
    const locks = testLocks()
    let token = 0n
    const loop = follow(
      (async () => {
        for await (const term of locks.lead('a')) {
          token = term.token
          await locks.inspect('a').then(({ holders: [holder] }) => expect(holder?.token).toBe(token))
          if (leave === 'return') return
          if (leave === 'throw') throw new Error('the body failed')
          break
        }
      })(),
    )
    await locks.advance(0)
    expect(loop).toMatchObject({ settled: true, error: leave === 'throw' ? { message: 'the body failed' } : undefined })
    expect(token).toBeGreaterThan(0n)
    expect((await locks.inspect('a')).holders[0]).toBeUndefined()
    await locks.close()
  }
})

test('a body that ends by itself is followed by another term, after the waiters and the pause', async () => {
  const { locks, other, clock } = stage()
  const order: string[] = []
  const stop = new AbortController()
  const loop = (async () => {
    for await (const term of locks.lead('a', { signal: stop.signal })) {
      order.push('mine')
      await new Promise<void>(resolve => clock.after(100, resolve))
      if (term.signal.aborted) break
    }
  })()
  await clock.advance(50)
  const rival = other.using('a', async () => {
    order.push('other')
  })
  await clock.advance(100)
  await rival
  expect(order).toEqual(['mine', 'other'])
  await clock.advance(1_000)
  expect(order).toEqual(['mine', 'other', 'mine'])
  stop.abort()
  await clock.advance(100)
  await loop
  expect(clock.pending).toBe(0)
})

test('a body that returns at once does not acquire and release the name without a pause', async () => {
  const { locks, clock, store } = stage()
  let terms = 0
  const loop = follow(
    (async () => {
      for await (const _ of locks.lead('a', { pause: 500 })) if (++terms === 100) return
    })(),
  )
  await clock.advance(2_000)
  expect([terms, loop.settled]).toEqual([5, false])
  expect(store.count('acquire')).toBe(5)
  await locks.close()
  expect(loop.settled).toBe(true)
})

test('when the lease is lost the signal aborts, and the next term begins only after the body has ended', async () => {
  const locks = testLocks()
  const log: string[] = []
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const loop = follow(
    (async () => {
      for await (const term of locks.lead('a')) {
        log.push(`begins ${term.signal.aborted}`)
        if (log.length > 1) return
        await told(term)
        log.push('told')
        await over
        log.push('ended')
      }
    })(),
  )
  await locks.advance(0)
  await locks.lose('a')
  await locks.advance(60_000)
  expect(log).toEqual(['begins false', 'told'])
  end()
  await locks.advance(0)
  expect(log).toEqual(['begins false', 'told', 'ended', 'begins false'])
  expect(loop.settled).toBe(true)
})

test('an abort while it waits, and during the body, ends the loop without an error and leaves nothing behind', async () => {
  for (const leads of [false, true]) {
    const { locks, other, clock, server } = stage()
    const stop = new AbortController()
    const rival = leads ? undefined : await other.acquire('a')
    const reasons: unknown[] = []
    const loop = follow(
      (async () => {
        for await (const term of locks.lead('a', { signal: stop.signal })) {
          await told(term)
          reasons.push(term.signal.reason)
        }
      })(),
    )
    await clock.advance(20_000)
    const reason = new Error('enough')
    stop.abort(reason)
    await clock.advance(0)
    expect(loop).toEqual({ settled: true, value: undefined, error: undefined })
    expect(reasons).toEqual(leads ? [reason] : [])
    await rival?.release()
    await clock.advance(0)
    for await (const record of server.inspect({ prefix: '' }, new AbortController().signal)) expect(record).toBe('gone')
    expect(clock.pending).toBe(0)
  }
})

test('close aborts the signal, waits for the body, and ends the loop', async () => {
  const { locks, clock } = stage()
  let ended = false
  const loop = follow(
    (async () => {
      for await (const term of locks.lead('a')) {
        await told(term)
        await new Promise<void>(resolve => clock.after(1_000, resolve))
        ended = true
      }
    })(),
  )
  await clock.advance(0)
  const closing = follow(locks.close())
  await clock.advance(999)
  expect(closing.settled).toBe(false)
  await clock.advance(1)
  expect([ended, loop.settled, loop.error, closing.settled]).toEqual([true, true, undefined, true])
  expect(() => locks.lead('a')).toThrow(expect.objectContaining({ code: 'CLOSED' }))
})

test('return() during the wait ends it and leaves nothing behind', async () => {
  const { locks, other, clock } = stage()
  const rival = await other.acquire('a')
  const terms = locks.lead('a')[Symbol.asyncIterator]()
  const changes = locks.election('a').observe()[Symbol.asyncIterator]()
  await clock.advance(0)
  expect(await changes.next()).toMatchObject({ value: { token: rival.token } })
  for (const items of [terms, changes] as AsyncIterator<unknown>[]) {
    const next = follow(items.next())
    await clock.advance(100)
    const left = follow(Promise.resolve(items.return?.()))
    await clock.advance(0)
    expect([next.value, left.settled]).toEqual([{ done: true, value: undefined }, true])
  }
  await rival.release()
  await clock.advance(0)
  expect((await locks.inspect('a')).holders[0]).toBeUndefined()
  expect(clock.pending).toBe(0)
})

test('a failing store is retried after pauses that double, up to a limit, and the candidate leads once it works again', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000 })
  const delays: number[] = []
  const stop = subscribe('leadership_delayed', ({ name, delay, failures, error }) => {
    expect({ name, failures, error }).toMatchObject({
      name: 'a',
      failures: delays.length + 1,
      error: { code: 'STORE_UNAVAILABLE' },
    })
    delays.push(delay)
  })
  store.ruleAll(refused)
  const loop = follow(locks.lead('a', { pause: 1_000, maxPause: 4_000 })[Symbol.asyncIterator]().next())
  await clock.advance(30_000)
  expect(delays.slice(0, 5)).toEqual([750, 1_500, 3_000, 3_000, 3_000])
  store.restore('acquire', 'renew', 'release', 'watch', 'break')
  await clock.advance(4_000)
  expect(loop.value?.value).toMatchObject({ name: 'a' })
  stop()
})

test('failures before a long wait, or a long term, do not count', async () => {
  const { locks, other, clock, store } = stage()
  const failures: number[] = []
  onTestFinished(subscribe('leadership_delayed', event => failures.push(event.failures)))
  const fail = async (): Promise<void> => {
    store.ruleAll(refused)
    await clock.advance(60_000)
    store.restore('acquire', 'renew', 'annotate', 'release', 'watch', 'break')
    await clock.advance(40_000)
  }
  const blocker = await other.acquire('a', { ttl: 86_400_000 })
  const leading = (async () => {
    for await (const term of locks.lead('a')) await told(term)
  })()
  await fail()
  await clock.advance(3_600_000) // it waits
  await fail()
  await blocker.release()
  await clock.advance(3_600_000) // it leads
  await fail()
  expect(failures.filter(count => count === 1)).toHaveLength(3)
  await locks.close()
  await leading
})

test('close ends a pause', async () => {
  const { locks, clock, store } = stage({ ttl: 1_000 })
  store.ruleAll(refused)
  const loop = follow(locks.lead('a', { pause: 100_000, maxPause: 100_000 })[Symbol.asyncIterator]().next())
  await clock.advance(10_000)
  void locks.close()
  await clock.advance(0)
  expect(loop.value).toEqual({ done: true, value: undefined })
})

test('invalid arguments are refused at once, or at the first term', async () => {
  const locks = testLocks()
  const code = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
  expect(() => locks.lead('')).toThrow(code)
  expect(() => locks.lead('a', { wait: 5 } as never)).toThrow(/lead has no option "wait"/)
  expect(() => locks.lead('a', { pause: 0 })).toThrow(code)
  expect(() => locks.lead('a', { pause: 100, maxPause: 50 })).toThrow(/maxPause/)
  expect(() => locks.lead('a', { signal: 'no' as never })).toThrow(code)
  await expect(locks.lead('a', { ttl: 1 })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
})

test('F12: release() in the body resigns and never rejects, also after a loss; the next term waits for the pause', async () => {
  const { locks, other, clock } = stage()
  const stop = new AbortController()
  const ends: [at: number, end: string][] = []
  const loop = follow(
    (async () => {
      for await (const term of locks.lead('a', { pause: 500, signal: stop.signal })) {
        if (ends.length === 1) await other.break('a')
        ends.push([clock.now(), await term.release()])
        if (ends.length === 1) expect(await other.tryAcquire('a').then(lease => lease?.release())).toBe('released')
      }
    })(),
  )
  await clock.advance(500)
  expect(ends.slice(0, 3)).toEqual([
    [0, 'released'],
    [500, 'lost'],
    [500, 'released'],
  ])
  stop.abort()
  await clock.advance(1_000)
  expect(loop).toEqual({ settled: true, value: undefined, error: undefined })
})
