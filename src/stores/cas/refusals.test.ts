import { expect, test } from 'vitest'
import { claimOf, failureOf, hold, look, signal } from '../../../test/support.ts'
import { held, meanwhile, System } from './test/system.ts'

test('a claim that is refused after a wrong guess writes nothing more', async () => {
  const system = new System()
  const [other, store] = [system.start(), system.start()]
  for (const each of [store, ...Array.from({ length: 10 }, () => other)]) {
    const claim = claimOf('a')
    await hold(each, claim)
    await each.release(claim, signal)
  }
  await hold(other, claimOf('a'))
  system.writes = 0
  expect(await held(store, claimOf('a'))).toBe(false)
  expect(system.writes).toBe(1) // the guess
})

test('a claim is not refused while a late write of it may still grant the name', async () => {
  const system = new System()
  const [other, store] = [system.start(), system.start()]
  await hold(other, claimOf('a', { ttl: 60_000 }))
  await look(store, { name: 'a' })
  const { write } = system
  const late = Promise.withResolvers<void>()
  let landed: Promise<unknown> | undefined
  system.write = async (...parameters) => {
    system.write = write
    landed = late.promise.then(() => write.apply(system, parameters))
    await new Promise<void>(resolve => system.clock.after(700, resolve))
    throw new Error('the connection was reset')
  }
  // They share a write. The break is given up before it is known what became of it.
  const controller = new AbortController()
  system.clock.after(650, () => controller.abort(new Error('given up')))
  const broken = failureOf(store.break('a', { by: 'test' }, controller.signal))
  const answer = await meanwhile(system, store.acquire(claimOf('a', { ttl: 60_000 }), signal))
  expect(await broken).toMatchObject({ message: 'given up' })
  late.resolve()
  expect(await landed).toBe(undefined) // the record has changed
  expect(answer).toMatchObject({ held: false })
  expect(await look(store, { name: 'a' })).toHaveLength(1)
})
