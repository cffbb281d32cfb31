import { expect, test } from 'vitest'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import { meanwhile, System } from './test/system.ts'

test('a grant that passes a waiter does not prolong its position, however long the write takes', async () => {
  const system = new System()
  const { clock } = system
  const store = system.start()
  const [holder, waiter] = [claimOf('a'), claimOf('a', { queue: true })]
  await hold(store, holder)
  const asked = clock.now()
  expect(await store.acquire(waiter, signal)).toMatchObject({ held: false, kept: true })
  await store.release(holder, signal)
  await clock.advance(1_000) // its grace period is over
  system.onWrite = () => new Promise(resolve => clock.after(500, resolve))
  await meanwhile(system, hold(store, claimOf('a')))
  const [, waiting] = await look(store, { name: 'a' })
  expect(waiting).toMatchObject({ state: 'waiting' })
  expect(waiting?.remaining).toBeCloseTo(asked + 5_000 - clock.now(), 3)
})

test('a note does not prolong a lease for a process that reads it late', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 10_000 }])
  await system.clock.advance(5_000)
  expect(await one.annotate({ ...claim, note: 'late' }, signal)).toBe(true)
  await system.clock.advance(4_000)
  expect(await look(two, { name: 'a' })).toMatchObject([{ note: 'late', remaining: 1_000 }])
})

test('a renewal prolongs a lease that its process sees for the first time at that moment', async () => {
  const system = new System()
  const [one, two, three] = [system.start(), system.start(), system.start()]
  const claim = claimOf('a')
  const token = await hold(one, claim)
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 10_000 }])
  await system.clock.advance(5_000)
  expect(await three.renew({ ...claim, token }, signal)).toMatchObject({ held: true })
  await system.clock.advance(9_000)
  expect(await look(two, { name: 'a' })).toMatchObject([{ state: 'held' }])
})

test('an acquire of a holder that prolongs nothing counts as a renewal, because it was answered as one', async () => {
  const system = new System()
  const [one, two, three] = [system.start(), system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 10_000 }])
  await system.clock.advance(5_000)
  expect(await three.acquire({ ...claim, ttl: 9_000 }, signal)).toMatchObject({ held: true, ttl: 9_000 })
  await system.clock.advance(6_000)
  expect(await two.acquire(claimOf('a'), signal)).toMatchObject({ held: false })
})

test('a holder whose grant was not answered holds when it asks again, also against who saw the end', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  const { read } = system
  system.onWrite = () => {
    system.read = () => new Promise(() => {})
    return new Promise(() => {})
  }
  const asked = one.acquire(claim, signal).catch(error => error)
  expect(await meanwhile(system, asked)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  system.onWrite = async () => {}
  system.read = read
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  await system.clock.advance(10_000)
  expect(await look(two, { name: 'a' })).toEqual([]) // it has seen the end
  expect(await one.acquire(claim, signal)).toMatchObject({ held: true })
  expect(await two.acquire(claimOf('a'), signal)).toMatchObject({ held: false })
})

test('a holder whose request was given up by an abort holds when it asks again, also against who saw the end', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  const { promise: written, resolve } = Promise.withResolvers<void>()
  system.onWrite = () => {
    resolve()
    return new Promise(() => {})
  }
  const caller = new AbortController()
  const asked = one.acquire(claim, caller.signal).catch(error => error)
  await written
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  await system.clock.advance(500)
  caller.abort(new Error('the caller left'))
  system.onWrite = async () => {}
  system.faults.push('refuses')
  expect(await one.acquire(claim, signal).catch(error => error)).toMatchObject({ code: 'ACCESS_DENIED' })
  expect(await asked).toMatchObject({ message: 'the caller left' })
  await system.clock.advance(9_600)
  expect(await look(two, { name: 'a' })).toEqual([]) // it has seen the end
  expect(await one.acquire(claim, signal)).toMatchObject({ held: true })
  expect(await two.acquire(claimOf('a'), signal)).toMatchObject({ held: false })
})
