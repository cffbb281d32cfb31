import { expect, test } from 'vitest'
import { follow, lost, stage, unanswered } from '../../test/scripted-store.ts'
import { testLocks } from '../testing/index.ts'
import { inOrder } from './names.ts'
import { heldNames } from './test/held-names.ts'

test('holds all names, gives the leases in the order of the call, and releases all', async () => {
  const { locks, other, clock, store } = stage()
  const set = await locks.all(['b', 'a', 'b']).acquire()
  expect(set.names).toEqual(['b', 'a'])
  expect(set.leases.map(({ name }) => name)).toEqual(['b', 'a'])
  expect(store.count('acquire')).toBe(2)
  set.assertHeld()
  expect(await heldNames(other)).toEqual(['a', 'b'])
  expect(await set.release()).toBe('released')
  expect(await set.ended).toBe('released')
  expect(await heldNames(other)).toEqual([])
  expect(() => set.assertHeld()).toThrow(expect.objectContaining({ code: 'CLOSED' }))
  expect([set.remaining, set.signal.aborted, clock.pending]).toEqual([0, false, 0])
})

test('the order is that of UTF-8 bytes, which is not that of JavaScript', () => {
  const names = ['\u{1f600}', '\uff5e', 'b', 'a', 'B', 'ab']
  expect(inOrder(names)).toEqual(['B', 'a', 'ab', 'b', '\uff5e', '\u{1f600}'])
  expect([...names].sort()).not.toEqual(inOrder(names))
})

test('when one is lost, the signal aborts with its reason and the others are released at once', async () => {
  const { locks, other, clock } = stage()
  const set = await locks.all(['a', 'b', 'c']).acquire()
  const ended = follow(set.ended)
  let seen: boolean | undefined
  set.leases[1]?.signal.addEventListener('abort', () => {
    seen = set.signal.aborted
  })
  await other.break('b')
  await clock.advance(3_333)
  expect(set.signal.aborted).toBe(true)
  expect(set.signal.reason).toMatchObject({ code: 'LEASE_LOST', leaseName: 'b' })
  expect(set.leases.map(({ signal }) => signal.reason)).toEqual(Array(3).fill(set.signal.reason))
  expect(() => set.assertHeld()).toThrow(set.signal.reason)
  expect(seen).toBe(true) // also by listeners of its leases
  expect(ended.value).toBe('lost')
  expect(await heldNames(other)).toEqual([])
  expect(await set.release()).toBe('lost')
  expect([set.remaining, clock.pending]).toEqual([0, 0])
})

test('after a loss, the release of the others holds nobody up for longer than a second', async () => {
  const { locks, other, clock, store } = stage()
  const set = await locks.all(['a', 'b']).acquire()
  store.rule('release', unanswered)
  await other.break('b')
  await clock.advance(3_333)
  const release = follow(set.release())
  await clock.advance(1_000)
  expect(release.value).toBe('lost')
})

test('reading the set detects a loss by the clock, after the event loop was blocked', async () => {
  for (const read of ['signal', 'assertHeld', 'remaining'] as const) {
    const { locks, clock, store } = stage()
    const set = await locks.all(['a', 'b']).acquire()
    store.ruleAll(lost)
    let seen: unknown
    clock.after(11_000, () => {
      try {
        seen = read === 'assertHeld' ? set.assertHeld() : read === 'signal' ? set.signal.reason : set.remaining
      } catch (error) {
        seen = error
      }
    })
    await clock.block(11_000)
    expect(seen).toEqual(read === 'remaining' ? 0 : expect.objectContaining({ code: 'LEASE_LOST' }))
    expect(set.signal.aborted).toBe(true)
  }
})

test('using: a loss after the work returned rejects with its result', async () => {
  const { locks, other, clock } = stage()
  const job = follow(
    locks.all(['a', 'b']).using(async set => {
      await other.break('b')
      await new Promise(resolve => set.signal.addEventListener('abort', resolve))
      return 42
    }),
  )
  await clock.advance(4_000)
  expect(job.error).toMatchObject({ code: 'LEASE_LOST', leaseName: 'b', result: 42 })
  expect(clock.pending).toBe(0)
})

test('using: the own signal aborts that of the set and of each lease, and all are held until the work ends', async () => {
  const { locks, other, clock } = stage()
  const stop = new AbortController()
  const reason = new Error('shutdown')
  const job = follow(
    locks.all(['a', 'b']).using(
      { signal: stop.signal },
      set =>
        new Promise<never>((_, reject) => {
          set.leases[1]?.signal.addEventListener('abort', () =>
            clock.after(500, () => reject(set.signal.reason as Error)),
          )
        }),
    ),
  )
  await clock.advance(0)
  stop.abort(reason)
  await clock.advance(499)
  expect(await heldNames(other)).toEqual(['a', 'b'])
  await clock.advance(1)
  expect(job.error).toBe(reason)
  expect(await heldNames(other)).toEqual([])
})

test('after close has aborted the signal, a loss still releases the rest', async () => {
  const { locks, other, clock } = stage()
  const set = await locks.all(['a', 'b']).acquire()
  void locks.close({ grace: 20_000 })
  await other.break('a')
  await clock.advance(3_333)
  expect(await heldNames(other)).toEqual([])
  expect(await set.ended).toBe('lost')
})

test('extend renews all; ttl, note and owner are those of each', async () => {
  const { locks, other, clock } = stage()
  const set = await locks.all(['a', 'b']).acquire({ ttl: 1_000, note: 'nightly', owner: 'me' })
  for (const name of ['a', 'b'])
    expect((await other.inspect(name)).holders[0]).toMatchObject({ note: 'nightly', owner: 'me', remaining: 1_000 })
  expect(await set.extend(5_000)).toBe(5_000 - 52)
  expect(set.leases.map(({ ttl }) => ttl)).toEqual([5_000, 5_000])
  await other.break('b')
  await expect(set.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
  await clock.advance(0)
  expect(await heldNames(other)).toEqual([])
})

test('a lease that is released by itself ends the set, and the rest stays until its release', async () => {
  const { locks, other } = stage()
  const set = await locks.all(['a', 'b']).acquire()
  await set.leases[0]?.release()
  expect(() => set.assertHeld()).toThrow(expect.objectContaining({ code: 'CLOSED', leaseName: 'a' }))
  expect([set.remaining, set.signal.aborted]).toEqual([0, false])
  expect(await heldNames(other)).toEqual(['b'])
  expect(await set.release()).toBe('released')
  expect(await heldNames(other)).toEqual([])
})

test('as JSON a set has its names, its leases with their tokens, and what remains', async () => {
  const locks = testLocks({ owner: 'me' })
  const set = await locks.all(['b', 'a']).acquire({ ttl: 1_000 })
  expect(JSON.parse(JSON.stringify(set))).toEqual({
    names: ['b', 'a'],
    leases: ['b', 'a'].map(name => ({ name, token: expect.any(String), owner: 'me', ttl: 1_000, remaining: 988 })),
    remaining: 988,
  })
  await locks.lose('a')
  expect(set.signal.reason).toMatchObject({ leaseName: 'a' })
  await locks.close()
})

test.each([
  [undefined, /needs an array of names/],
  ['a', /needs an array of names/],
  [[], /at least one name/],
  [['a', ''], /empty/],
  [['a', 7], /must be a string/],
  [Array.from({ length: 65 }, (_, index) => `n${index}`), /at most 64 names, not 65/],
])('refuses the names %j', (names, message) => {
  const locks = testLocks()
  expect(() => locks.all(names as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(() => locks.all(names as never)).toThrow(message)
})

test('ended resolves when the leases of a set were released one by one', async () => {
  const { locks, clock } = stage()
  const set = await locks.all(['a', 'b']).acquire()
  const ended = follow(set.ended)
  const [a, b] = set.leases
  await a?.release()
  await clock.advance(100)
  expect(ended.settled).toBe(false)
  await b?.release()
  await clock.advance(0)
  expect(ended.value).toBe('released')
})

test('accepts 64 names, and doubles beyond', async () => {
  const locks = testLocks()
  const names = Array.from({ length: 64 }, (_, index) => `n${index}`)
  expect((await locks.all([...names, ...names]).acquire()).names).toEqual(names)
  await locks.close()
})

test.each([
  [{ wait: -1 }, /wait must be/],
  [{ ttl: 1 }, /ttl must be/],
  [{ tll: 1 }, /acquire has no option "tll"/],
])('refuses the options %j', async (options, message) => {
  const locks = testLocks()
  await expect(locks.all(['a', 'b']).acquire(options as never)).rejects.toThrow(message)
  await expect(locks.all(['a', 'b']).using('x' as never)).rejects.toThrow(
    /must be a function and come last: using\(options, work\)/,
  )
  await locks.close()
})
