import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Lease, Locks } from '../../index.ts'
import { attempt } from './trial.ts'

test('a signal during the release of the first lease is no unhandled rejection', async () => {
  const unhandled = vi.fn<() => void>()
  process.on('unhandledRejection', unhandled)
  const released = Promise.withResolvers<void>()
  const first = { annotate: async () => {}, release: () => released.promise } as unknown as Lease
  let calls = 0
  // No mock of vitest, which would handle the rejection itself.
  const acquire = async (): Promise<Lease> => {
    calls += 1
    if (calls === 1) return first
    throw new Error('stopped')
  }
  const attempted = attempt({ acquire } as unknown as Locks, 'a', new AbortController().signal, () => {})
  await vi.waitUntil(() => calls === 2)
  await setImmediate() // Node reports unhandled rejections before that
  released.resolve()
  await expect(attempted).rejects.toThrow('stopped')
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})
