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
