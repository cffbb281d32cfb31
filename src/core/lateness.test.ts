import { expect, test } from 'vitest'
import { lost, stage } from '../../test/scripted-store.ts'

const BLOCKED =
  'the lease "a" was not renewed in time (the event loop was blocked for 13.0 s or more, or the process was paused)'

test('a lease that a blocked event loop lost says so, whoever notices the loss', async () => {
  for (const look of [true, false]) {
    const { locks, clock } = stage({ ttl: 12_000 })
    const lease = await locks.acquire('a')
    await clock.advance(4_500)
    const blocked = clock.block(16_000)
    if (look) expect(() => lease.assertHeld()).toThrow(BLOCKED) // within the block
    await blocked
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', message: BLOCKED })
  }
})

test('a lease that was lost for another reason does not blame the event loop', async () => {
  const { locks, clock, store } = stage({ ttl: 12_000 })
  const [unanswered, fixed] = [await locks.acquire('a'), await locks.acquire('b', { heartbeat: false })]
  await clock.advance(3_000)
  await clock.block(5_000) // delays a beat by more than a third of the ttl
  store.rule('renew', lost)
  await clock.advance(20_000)
  expect(unanswered.signal.reason).toMatchObject({ message: 'the lease "a" was not renewed in time' })
  expect(fixed.signal.reason).toMatchObject({ message: 'the lease "b" has no heartbeat, and its term ended' })
})
