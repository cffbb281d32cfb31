import { expect, onTestFinished, test, vi } from 'vitest'
import { LeaseError } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { conformanceCases, type Harness } from './index.ts'
import { Space } from './space.ts'

/** The store in memory, with some of its methods replaced. */
function changed(methods: Partial<Store>): Store {
  const store = memory()
  return new Proxy(store, {
    get(target, key) {
      const value = methods[key as keyof Store] ?? target[key as keyof Store]
      return typeof value === 'function' ? value.bind(target as never) : value
    },
  })
}

test('a case undoes what it did to the server, whatever fails', async () => {
  const events: string[] = []
  const store = changed({ [Symbol.asyncDispose]: async () => void events.push('closed') })
  let ahead = 0
  const harness: Harness = {
    name: 'mine',
    open: async () => store,
    faults: {
      stop: async () => () => Promise.reject(new Error('it does not start')),
      pause: async () => () => {
        events.push('resumed')
        throw new Error('it is resumed')
      },
      async jump(ms) {
        ahead += ms
      },
    },
  }
  const space = new Space(harness)
  await space.client()
  await space.stop()
  await space.pause()
  await space.jump(3_600_000)
  await space.jump(-500)
  await expect(space[Symbol.asyncDispose]()).rejects.toThrow('it does not start')
  expect(events).toEqual(['resumed', 'closed'])
  expect(ahead).toBe(0)
})

test('a case ends if a store rejects each request at once, although it may be asked again', async () => {
  const refuse = async (): Promise<never> => {
    throw new LeaseError('STORE_UNAVAILABLE', 'it never answers')
  }
  const store = changed({ renew: refuse, annotate: refuse })
  const lacks = { close: '-', cut: '-', delay: '-', stop: '-', pause: '-', jump: '-' }
  const cases = conformanceCases({ name: 'mine', open: async () => store, lacks })
  const never = cases.find(({ name }) => name.startsWith('R6: never reports a held lease as gone'))
  const outcome = never?.run().catch((error: unknown) => error)
  await new Promise(resolve => setTimeout(resolve, 50)) // timers run meanwhile
  const now = performance.now.bind(performance)
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + 31_000)
  onTestFinished(() => spy.mockRestore())
  expect(await outcome).toMatchObject({ message: 'it never answers' })
})
