import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../../lab/servers/until.ts'
import { collect, droppedWarnings, renewedAndCollected } from '../../../test/garbage.ts'
import { subscribe } from '../../contract/events.ts'
import { createLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'

const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
afterEach(() => void warn.mockClear())

test('no warning while a set is referred to, waits for a name, is in using, or its end is awaited', async () => {
  const stop = subscribe('lease_acquired', () => {}) // makes the handles
  const locks = createLocks(memory(), { ttl: 1_000 })
  const kept = await locks.all(['kept:a', 'kept:b']).acquire()
  void (await locks.all(['ended:a', 'ended:b']).acquire()).ended.then(() => {})
  const waiting = locks.all(['kept:0', 'kept:a']).acquire()
  const done = Promise.withResolvers<void>()
  const work = locks.all(['work:a', 'work:b']).using(() => done.promise)
  await renewedAndCollected(locks, 8)
  expect(droppedWarnings(warn)).toEqual([])
  await kept.release()
  await (await waiting).release()
  done.resolve()
  await work
  await locks.close({ grace: 0 })
  stop()
})

test('a set that is renewed without a reference causes a warning', async () => {
  const locks = createLocks(memory(), { ttl: 1_000 })
  await locks.all(['one', 'two']).acquire()
  await renewedAndCollected(locks, 8)
  await until('the warning', () => {
    collect()
    return droppedWarnings(warn).length > 0
  })
  expect(droppedWarnings(warn)[0]).toEqual([
    expect.stringMatching(/^the lease "(one|two)" is still renewed, but/),
    expect.objectContaining({ code: 'HOLDFAST_LEASE_DROPPED' }),
  ])
  await locks.close({ grace: 0 })
})
