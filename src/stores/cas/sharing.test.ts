import { expect, test, vi } from 'vitest'
import { claimOf, failureOf, hold, look, signal } from '../../../test/support.ts'
import type { Claim } from '../../contract/store.ts'
import { held, meanwhile, pass, System } from './test/system.ts'

test('a full record refuses further waiters, and serves those that wait', async () => {
  const system = new System()
  system.maxBytes = 4_000
  const store = system.start()
  const holder = claimOf('a')
  await hold(store, holder)
  const waiters: Claim[] = []
  let refused: unknown
  while (!refused) {
    const claim = claimOf('a', { queue: true, ttl: 60_000 })
    await store.acquire(claim, signal).then(
      () => waiters.push(claim),
      error => {
        refused = error
      },
    )
  }
  expect(waiters.length).toBeGreaterThan(10)
  expect(refused).toMatchObject({
    code: 'TOO_MANY_WAITERS',
    retryable: true,
    message: expect.stringMatching(/4000 bytes.*full with \d+ holders and waiters/),
  })
  expect(await store.annotate({ ...holder, note: 'n'.repeat(255) }, signal)).toBe(true)
  expect(await store.release(holder, signal)).toBe('released')
  expect(await held(store, waiters[0] as Claim)).toBe(true)
})

test('of claims that come together, those that have room wait', async () => {
  const system = new System()
  system.maxBytes = 4_000
  const claims = Array.from({ length: 40 }, () => claimOf('a', { queue: true }))
  const store = system.start()
  const answers = await Promise.allSettled(claims.map(claim => store.acquire(claim, signal)))
  expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(10)
  expect(answers.findIndex(({ status }) => status === 'rejected')).toBeGreaterThan(10) // the first come first
})

test('holders leave room for their renewals and withdrawals', async () => {
  const system = new System()
  system.maxBytes = 4_000
  const store = system.start()
  const claims: Claim[] = []
  let isFull = false
  while (!isFull) {
    const claim = claimOf('a', { limit: 1_000, ttl: 60_000 })
    await hold(store, claim).then(
      () => claims.push(claim),
      () => (isFull = true),
    )
  }
  await system.clock.advance(15_000)
  for (const claim of claims) expect(await store.renew(claim, signal)).toBeDefined()
  expect(await store.release(claimOf('a'), signal)).toBe('gone')
})

test('a claim that was withdrawn is refused for 5 s from the answer, however long that took', async () => {
  const system = new System()
  const store = system.start()
  const claim = claimOf('a')
  system.onWrite = async () => {
    system.onWrite = async () => {}
    await new Promise<void>(resolve => system.clock.after(3_000, resolve))
  }
  expect(await meanwhile(system, store.release(claim, signal))).toBe('gone')
  await system.clock.advance(4_900)
  expect(await held(store, claim)).toBe(false)
})

test('what is asked while another request is tried again shares that attempt', async () => {
  const system = new System()
  const store = system.start()
  await hold(store, claimOf('a'))
  const { writes } = system
  let second: Promise<unknown> | undefined
  system.faults.push('was repeated')
  system.onWrite = async () => {
    system.onWrite = async () => {}
    system.records.clear()
    setImmediate(() => (second = store.acquire(claimOf('a', { queue: true }), signal)))
  }
  await meanwhile(system, store.acquire(claimOf('a', { queue: true }), signal))
  await meanwhile(system, second ?? Promise.reject(new Error('it was not asked')))
  expect(system.writes - writes).toBe(2)
})

test.each(['read', 'write'] as const)('a %s without an answer is sent again after a second', async verb => {
  const system = new System()
  const { promise, resolve } = Promise.withResolvers<AbortSignal>()
  const really = system[verb] as (...parameters: unknown[]) => Promise<never>
  system[verb] = (...parameters: unknown[]) => {
    system[verb] = really
    resolve(parameters.find(each => each instanceof AbortSignal) as AbortSignal)
    return new Promise<never>(() => {})
  }
  const answers: unknown[] = []
  const asked = held(system.start(), claimOf('a', { ttl: 60_000 })).then(answer => answers.push(answer))
  await pass(system, 1_100)
  expect(answers).toEqual([true])
  await asked
  expect((await promise).aborted).toBe(true) // so that it does not keep a connection
  expect(system.clock.pending).toBe(0)
})

test.each(['happens', 'does not happen'])(
  'a write that is sent again is decided once if the first one %s',
  async what => {
    const system = new System()
    const { write } = system
    system.write = async (...parameters) => {
      system.write = write
      if (what === 'happens') await write.apply(system, parameters)
      return new Promise(() => {})
    }
    const store = system.start()
    const claim = claimOf('a', { ttl: 60_000 })
    const token = await meanwhile(system, hold(store, claim))
    expect(await look(store, { name: 'a' })).toMatchObject([{ token }])
    expect(await store.release(claim, signal)).toBe('released')
  },
)

test('a system that takes longer than a second for each request serves', async () => {
  const system = new System()
  const { read, write } = system
  const slowly = async <Answer>(send: () => Promise<Answer>): Promise<Answer> => {
    await new Promise<void>(resolve => system.clock.after(1_200, resolve))
    return send()
  }
  system.read = key => slowly(() => read.call(system, key))
  system.write = (...parameters) => slowly(() => write.apply(system, parameters))
  const store = system.start()
  const claim = claimOf('a')
  expect(await meanwhile(system, held(store, claim))).toBe(true)
  expect(await meanwhile(system, store.renew(claim, signal))).toBeDefined()
  expect(await meanwhile(system, store.release(claim, signal))).toBe('released')
})

test('a closed store leaves no request and no timer behind', async () => {
  const system = new System()
  const store = system.start()
  const signals: AbortSignal[] = []
  system.read = (_, ...[given]: readonly AbortSignal[]) => {
    if (given) signals.push(given)
    return new Promise(() => {})
  }
  const asked = failureOf(store.acquire(claimOf('a'), signal))
  const inspected = failureOf(look(store, { name: 'b' }))
  await vi.waitFor(() => expect(signals).toHaveLength(2))
  await store[Symbol.asyncDispose]()
  for (const { code } of await Promise.all([asked, inspected])) expect(code).toBe('CLOSED')
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  expect(system.clock.pending).toBe(0)
})

test('an inspection that is given up ends, whatever the register does', async () => {
  const system = new System()
  system.read = () => new Promise(() => {})
  const inspecting = Array.fromAsync(system.start().inspect({ name: 'a' }, AbortSignal.timeout(1)))
  await expect(inspecting).rejects.toMatchObject({ name: 'TimeoutError' })
})

test('a list that is late does not make a process forget since when it knows a lease', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  const [[key, entry] = ['', undefined]] = [...system.records]
  await one.renew(claim, signal)
  await look(two, { name: 'a' })
  await system.clock.advance(6_000)
  const { list } = system
  system.list = async function* () {
    yield { key, ...(entry && { entry }) }
  }
  await look(two, { prefix: '' })
  system.list = list
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 4_000 }])
})

test('an age that is no number is none', async () => {
  const system = new System()
  const { read } = system
  system.read = async key => {
    const found = await read.call(system, key)
    return found && { ...found, age: Number.NaN }
  }
  await hold(system.start(), claimOf('a'))
  const next = system.start()
  expect(await held(next, claimOf('a'))).toBe(false)
  await system.clock.advance(10_000)
  expect(await held(next, claimOf('a'))).toBe(true)
})
