import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { connect } from '../../index.ts'

/** Blocks the event loop of this thread. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('a thread renews every slot of a permit while the event loop is blocked', async () => {
  await using locks = await connect(`sqlite:${join(newFolder('permits'), 'leases.db')}`, { ttl: 2_000 })
  const semaphore = locks.semaphore('api', { limit: 3 })
  const permit = await semaphore.acquire({ permits: 2, heartbeat: 'thread', maxBlocked: 20_000 })
  block(4_500)
  permit.assertHeld()
  expect(await semaphore.tryAcquire({ permits: 2 })).toBeUndefined()
  const third = await semaphore.tryAcquire()
  expect(third?.slot).toBe(2)
  for (const each of [permit, third]) expect(await each?.release()).toBe('released')
})

test('maxHold of a permit or a set ends the renewals of all its leases while the event loop is blocked', async () => {
  const url = `sqlite:${join(newFolder('permits'), 'leases.db')}`
  await using locks = await connect(url, { ttl: 1_000, heartbeat: 'thread', maxBlocked: 20_000, maxHold: 1_000 })
  await using others = await connect(url, { ttl: 1_000 })
  await locks.semaphore('api', { limit: 2 }).acquire({ permits: 2 })
  await locks.all(['a', 'b']).acquire()
  block(2_500)
  const set = await others.all(['a', 'b']).tryAcquire()
  const permit = await others.semaphore('api', { limit: 2 }).tryAcquire({ permits: 2 })
  for (const each of [set, permit]) expect(await each?.release()).toBe('released')
})
