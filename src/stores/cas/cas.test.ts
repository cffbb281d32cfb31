import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import { createLocks } from '../../create-locks.ts'
import { cas } from './index.ts'
import { keyOf, nameOf } from './key.ts'
import type { Request } from './request.ts'
import { SharedName } from './shared-name.ts'
import { held, meanwhile, pass, System } from './test/system.ts'

afterEach(() => vi.restoreAllMocks())

test('a process that does not know how old a record is waits a ttl from its first look, and no longer', async () => {
  const system = new System()
  await hold(system.start(), claimOf('a'))
  await system.clock.advance(8_000)
  const next = system.start()
  const claim = claimOf('a')
  expect(await held(next, claim)).toBe(false)
  await system.clock.advance(9_999)
  expect(await held(next, claim)).toBe(false)
  await system.clock.advance(1)
  expect(await held(next, claim)).toBe(true)
})

test('what a process saw is kept in the record, so that others need not begin again', async () => {
  const system = new System()
  await hold(system.start(), claimOf('a'))
  const first = system.start()
  expect(await held(first, claimOf('a', { queue: true }))).toBe(false)
  await system.clock.advance(6_000)
  expect(await held(first, claimOf('a', { queue: true }))).toBe(false)
  const second = system.start()
  const [holder] = await look(second, { name: 'a' })
  expect(holder?.remaining).toBe(4_000)
})

test('the first of twenty one-shot processes after the ttl of a dead one takes over, where the age of a record is known', async () => {
  const system = Object.assign(new System(), { knowsAge: true })
  await hold(system.start(), claimOf('a'))
  const answers: boolean[] = []
  for (let index = 0; index < 20; index += 1) {
    await system.clock.advance(1_000)
    await using store = system.start()
    answers.push(await held(store, claimOf('a')))
  }
  expect(answers.indexOf(true)).toBe(9)
})

test('where it is not known, none of them does, so what needs that is refused with the reason', async () => {
  const system = new System()
  await hold(system.start(), claimOf('a'))
  for (let index = 0; index < 20; index += 1) {
    await system.clock.advance(1_000)
    await using store = system.start()
    expect(await held(store, claimOf('a'))).toBe(false)
  }
  const store = system.start()
  expect(store.guarantees).toMatchObject({
    maxUnattended: 0,
    limits: expect.arrayContaining([expect.stringMatching(/never takes over/)]),
  })
  await expect(createLocks(store).once('a', { within: 60_000 }, async () => {})).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/knows when it ends/),
  })
})

test('a renewal that is written after its lease has ended revives it for all, also for who saw it end', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a', { ttl: 1_000 })
  await hold(one, claim)
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const { write } = system
  system.write = async (...parameters) => {
    await promise
    return write.apply(system, parameters)
  }
  const renewing = one.renew(claim, signal).catch(() => {})
  await pass(system, 1_100)
  await renewing
  expect(await look(two, { name: 'a' })).toHaveLength(0)
  resolve()
  await vi.waitFor(() => expect(system.writes).toBe(2))
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  expect(await held(two, claimOf('a'))).toBe(false)
})

test.each([true, false])(
  'a renewal that is written late, and a claim that saw the end: one holds (the renewal: %s)',
  async isFirst => {
    const system = new System()
    const [one, two] = [system.start(), system.start()]
    const claim = claimOf('a', { ttl: 1_000 })
    await hold(one, claim)
    expect(await look(two, { name: 'a' })).toHaveLength(1)
    await pass(system, 900)
    const { write } = system
    system.write = async (...parameters) => {
      await new Promise<void>(resolve => system.clock.after(150, resolve))
      return write.apply(system, parameters)
    }
    const renewing = one.renew(claim, signal)
    await pass(system, 110)
    system.write = write
    expect(await look(two, { name: 'a' })).toHaveLength(0)
    if (!isFirst) await hold(two, claimOf('a'))
    await pass(system, 50)
    if (isFirst) {
      expect(await renewing).toMatchObject({ held: true })
      expect(await held(two, claimOf('a'))).toBe(false)
    } else expect(await renewing).toBeUndefined()
  },
)

test('a wall clock that is set forward ends no lease of another process', async () => {
  const system = new System()
  await hold(cas(system), claimOf('a'))
  const other = cas(system)
  expect(await held(other, claimOf('a'))).toBe(false)
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + 3_600_000)
  expect(await held(other, claimOf('a'))).toBe(false)
})

test.each(['loses the answer', 'was repeated'] as const)(
  'a write that %s is found by its id, and not decided twice',
  async fault => {
    const system = new System()
    const [one, two] = [system.start(), system.start()]
    const claim = claimOf('a')
    const settled = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
      system.faults.push(fault)
      const answer = ask()
      await pass(system, 50)
      return answer
    }
    const token = await settled(() => hold(one, claim))
    expect(await look(two, { name: 'a' })).toMatchObject([{ token }])
    system.onWrite = async () => {
      system.onWrite = async () => {}
      await two.annotate({ ...claim, note: 'by another' }, signal) // it is not the last write any more
    }
    expect((await settled(() => one.renew(claim, signal)))?.token).toBe(token)
    expect(await settled(() => one.release(claim, signal))).toBe('released')
    await hold(one, claimOf('a'))
    const broken = await settled(() => two.break('a', { by: 'test' }, signal))
    expect(broken).toBeGreaterThan(token)
    expect(await look(two, { name: 'a' })).toEqual([])
  },
)

test('a release whose outcome nobody can find out is unknown, and not called gone', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  system.faults.push('loses the answer')
  system.onWrite = async () => {
    system.onWrite = async () => {}
    for (let index = 0; index < 5; index += 1) {
      const next = claimOf('a')
      await hold(two, next)
      await two.release(next, signal)
    }
  }
  const released = meanwhile(system, one.release(claim, signal))
  await expect(released).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
  expect(await one.release(claim, signal)).toBe('gone')
})

test('who only looks leaves no listener behind', async () => {
  const system = new System()
  const shared = { register: system, clock: system.clock, wake: () => {} }
  const { signal: own } = new AbortController()
  await new SharedName('a', shared).look(own)
  expect(getEventListeners(own, 'abort')).toEqual([])
})

test('a request that hangs does not delay the next one, once nobody waits for it', async () => {
  const system = new System()
  const { read } = system
  system.read = () => {
    system.read = read
    return new Promise(() => {})
  }
  const store = system.start()
  const controller = new AbortController()
  const hanging = store.acquire(claimOf('a'), controller.signal).catch((error: unknown) => error)
  await new Promise(resolve => setImmediate(resolve))
  controller.abort('given up')
  await hold(store, claimOf('a'))
  expect(await hanging).toBe('given up')
})

test('a request that hangs does not delay the next one, once only a look waits for it', async () => {
  const system = new System()
  const { read } = system
  system.read = () => {
    system.read = read
    return new Promise(() => {})
  }
  const name = new SharedName('a', { register: system, clock: system.clock, wake: () => {} })
  const controller = new AbortController()
  const ask = (answer: string, parameters: Partial<Request<string>> = {}): Promise<string> =>
    name.ask({ signal, limit: 1_500, isRepeatable: true, decide: () => answer, ...parameters })
  const looking = ask('looked', { looks: true })
  const hanging = ask('', { signal: controller.signal }).catch((error: unknown) => error)
  await new Promise(resolve => setImmediate(resolve))
  controller.abort('given up')
  expect(await ask('next')).toBe('next')
  expect(await Promise.all([hanging, looking])).toEqual(['given up', 'looked'])
})

test('what the system refuses is reported at once', async () => {
  const system = new System()
  system.faults.push('refuses')
  await expect(hold(system.start(), claimOf('a'))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
})

test('a record that was deleted ends its lease, and tokens still rise', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  const token = await hold(one, claim)
  await system.clock.advance(1)
  system.records.clear()
  expect(await one.renew(claim, signal)).toBeUndefined()
  expect(await hold(two, claimOf('a'))).toBeGreaterThan(token)
  expect(await one.release(claim, signal)).toBe('gone')
})

test('tokens do not fall where the wall clock of a process is behind', async () => {
  const system = new System()
  const behind = cas(system, { clock: { now: () => 0, wall: () => 0, after: () => () => {} } })
  let last = 0n
  for (const store of [system.start(), behind, system.start(), behind]) {
    const claim = claimOf('a')
    const token = await hold(store, claim)
    await store.release(claim, signal)
    expect(token).toBeGreaterThan(last)
    last = token
  }
})

test('a system may delete a record that nobody needs, and is told for how long one is needed', async () => {
  const system = new System()
  const ttl = 2_000_000_000
  await hold(system.start(), claimOf('a', { ttl }))
  expect(system.keep).toBeGreaterThan(ttl)
})

test('claims of one process share a write', async () => {
  const system = new System()
  const store = system.start()
  await hold(store, claimOf('a'))
  const [reads, writes] = [system.reads, system.writes]
  await Promise.all(Array.from({ length: 200 }, () => store.acquire(claimOf('a', { queue: true }), signal)))
  expect([system.reads - reads, system.writes - writes]).toEqual([1, 1])
})

test('of a crowd, 250 share a write, because their decisions block the process meanwhile', async () => {
  const system = new System()
  const store = system.start()
  await hold(store, claimOf('a'))
  const { writes } = system
  const asking = Array.from({ length: 1_000 }, () => store.acquire(claimOf('a', { queue: true }), signal))
  expect((await Promise.all(asking)).every(({ held }) => !held)).toBe(true)
  expect(system.writes - writes).toBe(4)
})

test('a claim that was withdrawn is refused by every process for 5 s from its last release', async () => {
  const system = Object.assign(new System(), { knowsAge: true })
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  expect(await one.release(claim, signal)).toBe('gone')
  expect(await held(two, claim)).toBe(false)
  await system.clock.advance(4_000)
  expect(await one.release(claim, signal)).toBe('gone')
  await system.clock.advance(4_000)
  expect(await held(two, claim)).toBe(false)
  await system.clock.advance(1_000)
  expect(await held(two, claim)).toBe(true)
})

test.each([
  ['of a later version', '{"format":99}', /format 99.*format 1: use one version/],
  ['of another program', 'hello', /no format of Holdfast/],
])('a record %s is refused', async (_, value, says) => {
  const system = new System()
  system.records.set(keyOf('a'), { value, version: 1, written: 0 })
  const failing = hold(system.start(), claimOf('a'))
  await expect(failing).rejects.toMatchObject({ code: 'FORMAT_MISMATCH', message: expect.stringMatching(says) })
})

test('keys have only characters that every system allows, begin as their names do, and lead back to them', () => {
  const text = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(text, text, (prefix, rest) => {
      const key = keyOf(prefix + rest)
      expect(key).toMatch(/^[\w=-]*$/)
      expect(key.startsWith(keyOf(prefix))).toBe(true)
      expect(nameOf(key)).toBe((prefix + rest).toWellFormed())
    }),
  )
  for (const foreign of ['a.b', 'a=2', 'a=61', 'a=ff', '=FF']) expect(nameOf(foreign)).toBeUndefined()
})

test.each([
  [undefined, /function read/],
  [{ read() {}, write() {} }, /function list/],
  [{ read() {}, write() {}, list() {} }, /maxBytes/],
])('what is no register is refused', (register, says) => {
  expect(() => cas(register as never)).toThrow(says)
})
