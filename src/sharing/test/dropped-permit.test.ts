import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { collect, droppedWarnings, renewedAndCollected } from '../../../test/garbage.ts'
import { subscribe } from '../../contract/events.ts'
import { createLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'

const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
afterEach(() => void warn.mockClear())

test('no warning while a permit is referred to, waits for a slot, or is in using', async () => {
  const stop = subscribe('lease_acquired', () => {})
  const locks = createLocks(memory(), { ttl: 1_000 })
  const kept = await locks.semaphore('kept', { limit: 2 }).acquire({ permits: 2 })
  const waiting = locks.semaphore('kept', { limit: 3 }).acquire({ permits: 3 })
  const done = Promise.withResolvers<void>()
  const work = locks.readWrite('work').writer.using(() => done.promise)
  await renewedAndCollected(locks, 8)
  expect(droppedWarnings(warn)).toEqual([])
  await kept.release()
  await (await waiting).release()
  done.resolve()
  await work
  await locks.close({ grace: 0 })
  stop()
})

test('a permit that is renewed without a reference causes one warning, which names what was acquired', async () => {
  const locks = createLocks(memory(), { ttl: 1_000 })
  await locks.semaphore('api', { limit: 4 }).acquire({ permits: 4 })
  await renewedAndCollected(locks, 8)
  await until('the warning', () => {
    collect()
    return droppedWarnings(warn).length > 0
  })
  expect(droppedWarnings(warn)).toEqual([
    [
      expect.stringMatching(/^the lease "api" is still renewed, but/),
      expect.objectContaining({ code: 'HOLDFAST_LEASE_DROPPED' }),
    ],
  ])
  await locks.close({ grace: 0 })
})
