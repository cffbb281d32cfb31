import { expect, test } from 'vitest'
import { follow, stage } from '../../test/scripted-store.ts'
import { VirtualClock } from '../testing/clock.ts'
import { Heartbeat } from './heartbeat.ts'

// A process that was paused reads the answer late. The next regular renewal would come after the end of the lease.

test('a lease whose grant is read late is renewed before it ends', async () => {
  const { locks, clock, store } = stage({ ttl: 10_000 })
  const answer = store.holdReplies('acquire')
  const acquiring = follow(locks.acquire('a', { wait: 60_000 }))
  await clock.advance(0)
  answer()
  await clock.block(9_000)
  expect(acquiring.settled).toBe(true)
  await clock.advance(20_000)
  acquiring.value?.assertHeld()
})

test('a lease whose renewal is read late is renewed again before it ends', async () => {
  const clock = new VirtualClock()
  const sent: number[] = []
  let answer = (): void => {}
  const lease = {
    ttl: 9_000,
    renewedAt: 0,
    renew: async () => {
      const at = sent.push(clock.now()) - 1
      await new Promise<void>(resolve => (answer = resolve))
      lease.renewedAt = sent[at] as number
      return undefined
    },
  }
  new Heartbeat(clock, () => 1).join(lease)
  await clock.advance(3_000)
  await clock.block(6_000) // the timer of the next regular renewal fires before the answer is read
  answer()
  await clock.advance(0)
  expect(sent).toEqual([3_000, 9_000])
})
