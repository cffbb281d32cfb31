import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { collect } from '../../../test/garbage.ts'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import { System } from './test/system.ts'

test('a lease that ends while its record is read is shown, because a renewal of it may have been written meanwhile', async () => {
  const system = new System()
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  await system.clock.advance(9_990)
  const { read } = system
  system.read = async key => {
    system.read = read
    const found = await read.call(system, key)
    expect((await one.renew(claim, signal))?.held).toBe(true)
    await system.clock.advance(10)
    return found
  }
  expect(await look(two, { name: 'a' })).toHaveLength(1)
  expect(await look(two, { name: 'a' })).toMatchObject([{ remaining: 10_000 }])
})

test('ten thousand inspections leave nothing behind, also on the oldest Node', async () => {
  const store = new System().start()
  const controller = new AbortController()
  const heap = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const inspect = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i += 1) await Array.fromAsync(store.inspect({ name: 'a' }, controller.signal))
  }
  await inspect(2_000)
  const before = heap()
  await inspect(10_000)
  // It was 12 million with `AbortSignal.any` on Node 22.
  expect(heap() - before).toBeLessThan(500_000)
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
})

test('an inspection ends when its store is closed', async () => {
  const system = new System()
  const store = system.start()
  system.read = () => new Promise(() => {})
  const looking = look(store, { name: 'a' })
  await store[Symbol.asyncDispose]()
  await expect(looking).rejects.toMatchObject({ code: 'CLOSED' })
})
