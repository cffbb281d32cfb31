import { describe, expect, test } from 'vitest'
import { follow, lost, refused, stage } from '../../test/scripted-store.ts'
import { subscribe } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'

/** Work that continues until its signal aborts, then fails as many functions do. */
function untilAborted(fail: (reason: unknown) => unknown) {
  return ({ signal }: Lease): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(fail(signal.reason) as Error)))
}

test('using holds while the work runs, resolves to its result, and releases before it does', async () => {
  const { locks, other } = stage()
  const result = await locks.using('a', async lease => {
    lease.assertHeld()
    expect(await other.tryAcquire('a')).toBeUndefined()
    return 42
  })
  expect(result).toBe(42)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('F11: the type of work must be a promise or thenable, but a plain value is still returned', async () => {
  const { locks, clock } = stage()
  // @ts-expect-error F11: a plain value may be a forgotten `return`; at run time it is the result
  expect(await locks.using('a', ({ name }) => name)).toBe('a')
  const thenable = (settle: (resolve: (value: number) => void, reject: (error: Error) => void) => void) =>
    Object.defineProperty({}, 'then', { value: settle }) as PromiseLike<number>
  const resolving = thenable((resolve, reject) => {
    resolve(7)
    reject(new Error('too late'))
  })
  expect(await locks.using('a', () => resolving)).toBe(7)
  await expect(locks.using('a', () => thenable((_, reject) => reject(new Error('x'))))).rejects.toThrow('x')
  expect(clock.pending).toBe(0)
})

test.each([
  ['rejects', async () => Promise.reject(new Error('mine'))],
  [
    'throws at once',
    () => {
      throw new Error('mine')
    },
  ],
])('work that %s has its own error thrown, after the release', async (_, work) => {
  const { locks, other } = stage()
  await expect(locks.using('a', work)).rejects.toThrow('mine')
  expect(await other.tryAcquire('a')).toBeDefined()
})

describe('when the lease is lost', () => {
  test.each([
    ['the reason itself', (reason: unknown) => reason],
    ['an AbortError of its own', () => new DOMException('aborted', 'AbortError')],
    ['an error that the reason caused', (cause: unknown) => new Error('fetch failed', { cause })],
  ])('work that fails with %s rejects with the reason', async (_, fail) => {
    const { locks, other, clock } = stage()
    const job = follow(locks.using('a', untilAborted(fail)))
    await clock.advance(0)
    await other.break('a')
    await clock.advance(3_333)
    expect(job.error).toMatchObject({ name: 'LeaseError', code: 'LEASE_LOST' })
    expect(clock.pending).toBe(0)
  })

  test('work that fails for another reason rejects with that', async () => {
    const { locks, other, clock } = stage()
    const job = follow(
      locks.using(
        'a',
        untilAborted(() => new Error('disk full')),
      ),
    )
    await clock.advance(0)
    await other.break('a')
    await clock.advance(3_333)
    expect(job.error).toMatchObject({ message: 'disk full' })
  })

  test('work that still returns rejects LEASE_LOST with the result, at the latest at the release', async () => {
    const { locks, other } = stage()
    const work = async (): Promise<string> => {
      await other.break('a')
      return 'done'
    }
    await expect(locks.using('a', work)).rejects.toMatchObject({ code: 'LEASE_LOST', leaseName: 'a', result: 'done' })
  })

  test('work that blocked the event loop past the deadline rejects LEASE_LOST with the result', async () => {
    const { locks, clock } = stage()
    const work = async (): Promise<string> => {
      void clock.block(20_000)
      return 'done'
    }
    const job = follow(locks.using('a', work))
    await clock.advance(0)
    expect(job.error).toMatchObject({ code: 'LEASE_LOST', result: 'done' })
  })

  test('by maxHold, the code says so', async () => {
    const { locks, clock } = stage()
    const job = follow(
      locks.using('a', { maxHold: 5_000 }, ({ signal }) => new Promise(done => signal.addEventListener('abort', done))),
    )
    await clock.advance(5_000)
    expect(job.error).toMatchObject({ code: 'MAX_HOLD', result: expect.any(Event) })
  })

  test('S5: and the store is down, using settles at once', async () => {
    const { locks, clock, store } = stage()
    const job = follow(
      locks.using(
        'a',
        untilAborted(reason => reason),
      ),
    )
    await clock.advance(0)
    store.ruleAll(lost)
    await clock.advance(10_000)
    expect(job.error).toMatchObject({ code: 'LEASE_LOST' })
    await clock.advance(3_334 + 5_000) // the renewal under way, and the withdrawal
    expect(clock.pending).toBe(0)
  })
})

test('F1, S5: a failed release is an event after 2 s at most, and hides neither result nor error', async () => {
  const { locks, clock, store } = stage()
  store.rule('release', refused)
  const failed: string[] = []
  const stop = subscribe('release_failed', ({ name, error }) => failed.push(`${name} ${error.code}`))
  const good = follow(locks.using('a', async () => 'result'))
  const bad = follow(locks.using('b', () => Promise.reject(new Error('mine'))))
  await clock.advance(2_000)
  expect(good.value).toBe('result')
  expect(bad.error).toMatchObject({ message: 'mine' })
  await clock.advance(3_000)
  stop()
  expect(failed).toEqual(['a STORE_UNAVAILABLE', 'b STORE_UNAVAILABLE'])
})

test('work that releases the lease itself is no loss', async () => {
  const { locks, store } = stage()
  const work = async (lease: Lease): Promise<string> => {
    await lease.release()
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    return 'done'
  }
  expect(await locks.using('a', work)).toBe('done')
  expect(store.count('release')).toBe(1)
})

test('the signal of the caller aborts the signal of the work, and its reason is what using rejects with', async () => {
  const { locks, other, clock } = stage()
  const controller = new AbortController()
  const job = follow(
    locks.using(
      'a',
      { signal: controller.signal },
      untilAborted(() => new DOMException('x', 'AbortError')),
    ),
  )
  await clock.advance(0)
  const reason = { shutdown: true }
  controller.abort(reason)
  await clock.advance(0)
  expect(job.error).toBe(reason)
  expect(await other.tryAcquire('a')).toBeDefined()
})

test('work that succeeds although the caller aborted resolves to its result', async () => {
  const { locks, clock } = stage()
  const controller = new AbortController()
  const job = follow(
    locks.using(
      'a',
      {
        signal: controller.signal,
      },
      ({ signal }) => new Promise(done => signal.addEventListener('abort', () => done('tidied up'))),
    ),
  )
  await clock.advance(0)
  controller.abort()
  await clock.advance(0)
  expect(job.value).toBe('tidied up')
})

test('the signal of the caller aborts the wait, and no work is done', async () => {
  const { locks, other, clock } = stage()
  await other.acquire('a')
  const controller = new AbortController()
  let worked = false
  const job = follow(locks.using('a', { signal: controller.signal }, async () => (worked = true)))
  await clock.advance(0)
  controller.abort('enough')
  await clock.advance(0)
  expect(job.error).toBe('enough')
  expect(worked).toBe(false)
})

test('nested using of one name times out and says that these locks hold it', async () => {
  const { locks, clock } = stage()
  const job = follow(locks.using('a', () => locks.using('a', { wait: 1_000 }, async () => 'never')))
  await clock.advance(1_000)
  expect(job.error).toMatchObject({
    code: 'BUSY',
    message: expect.stringContaining('it is held by another call of these locks ('),
  })
  expect(clock.pending).toBe(0)
})

test('bodies of one name run one after the other, in order', async () => {
  const { locks, clock } = stage()
  const ran: string[] = []
  const jobs = ['1', '2', '3', '4', '5'].map(each =>
    locks.using('a', async () => {
      ran.push(`${each} begins`)
      await new Promise<void>(resolve => clock.after(100, resolve))
      ran.push(`${each} ends`)
    }),
  )
  await clock.advance(2_000)
  await Promise.all(jobs)
  expect(ran).toEqual(['1', '2', '3', '4', '5'].flatMap(each => [`${each} begins`, `${each} ends`]))
})

test('tryUsing runs the work if nobody holds the name, else says who does', async () => {
  const { locks, other, store } = stage()
  const held = await other.acquire('a')
  let worked = false
  const outcome = await locks.tryUsing('a', { ttl: 5_000 }, async () => (worked = true))
  expect(outcome).toMatchObject({ ran: false, why: 'held', holder: { owner: 'other', token: held.token } })
  expect([worked, store.count('acquire')]).toEqual([false, 1])
  await held.release()
  expect(await locks.tryUsing('a', undefined, async lease => lease.name)).toEqual({ ran: true, result: 'a' })
  expect(await other.tryAcquire('a')).toBeDefined()
  const semaphore = locks.semaphore('b', { limit: 2 })
  expect(await semaphore.tryUsing({ permits: 2 }, async ({ slots }) => slots)).toEqual({ ran: true, result: [0, 1] })
  await other.acquire('b')
  expect(await semaphore.tryUsing(async () => true)).toMatchObject({ ran: false, holder: { owner: 'other' } })
})

test('tryUsing rejects as using does, and has no wait', async () => {
  const { locks, store } = stage()
  await expect(locks.tryUsing('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await expect(locks.tryUsing('a', { wait: 1 } as never, async () => {})).rejects.toThrow(
    'tryUsing has no option "wait"',
  )
  store.rule('acquire', refused)
  await expect(locks.tryUsing('a', async () => {})).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})

test('the types of using: the work comes last, and decides the result', async () => {
  const { locks } = stage()
  const number: number = await locks.using('a', { ttl: 5_000 }, async () => 1)
  const text: string = await locks.using('a', undefined, async ({ name }) => name)
  expect([number, text]).toEqual([1, 'a'])
  const work = async (): Promise<void> => {}
  // @ts-expect-error The options come before the work.
  await expect(locks.using('a', work, { ttl: 5_000 })).rejects.toThrow('using(name, options, work)')
  // @ts-expect-error There is no work.
  await expect(locks.using('a', { ttl: 5_000 })).rejects.toThrow('using(name, work)')
  // @ts-expect-error The options come before the work.
  await expect(locks.readWrite('a').writer.using(work, { ttl: 5_000 })).rejects.toThrow('using(options, work)')
})

test('the work of a grant whose lease has ended meanwhile does not begin', async () => {
  const { locks, store, clock } = stage({ ttl: 10_000 })
  const now = clock.now.bind(clock)
  let computed = 0
  clock.now = () => now() + computed
  const release = store.holdReplies('acquire') // one read of the socket brings both answers
  let begun = 0
  const work = async (): Promise<void> => {
    begun += 1
    computed += 11_000 // before its first await
  }
  const all = ['a', 'b'].map(name => follow(locks.using(name, work)))
  await clock.advance(1)
  release()
  await clock.advance(100)
  expect(begun).toBe(1)
  expect(all.map(({ error }) => (error as { code?: unknown } | undefined)?.code)).toEqual(['LEASE_LOST', 'LEASE_LOST'])
})
