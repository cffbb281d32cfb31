import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../../../../lab/servers/folder.ts'
import { connect } from '../../../index.ts'

/** Blocks the event loop of this thread. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('a thread renews every slot of a permit while the event loop is blocked', async () => {
  await using locks = await connect(`sqlite:${join(newFolder('permits'), 'leases.db')}`, { ttl: 2_000 })
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permit = await semaphore.acquire({ permits: 2, heartbeat: 'thread', livenessLimit: 20_000 })
  block(4_500)
  permit.assertHeld()
  expect(await semaphore.tryAcquire({ permits: 2 })).toBeUndefined()
  const third = await semaphore.tryAcquire()
  expect(third?.slot).toBe(2)
  for (const each of [permit, third]) expect(await each?.release()).toBe('released')
})
