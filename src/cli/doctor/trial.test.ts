import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Lease, Locks } from '../../index.ts'
import { attempt, leftover } from './trial.ts'

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

test.each([
  'NOPERM this user has no permissions to run the del command',
  'permission denied for table lease',
  "DELETE command denied to user 'app'@'localhost' for table 'lease'",
])('a name that this user may not delete is no warning: %s', text => {
  expect(leftover('a', new Error(text))).toMatchObject({ level: 'ok', what: expect.stringContaining('may not delete') })
})

test('a name that could not be deleted for another reason says which', () => {
  expect(leftover('a', new Error('connect ECONNREFUSED'))).toMatchObject({
    level: 'warning',
    what: 'the free name a could not be deleted (connect ECONNREFUSED)',
  })
})
