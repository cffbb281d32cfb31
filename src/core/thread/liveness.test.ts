import { expect, test } from 'vitest'
import { subscribe } from '../../contract/events.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { Liveness, Proof } from './liveness.ts'

/** The main thread's proof, and the other thread's view of it. */
function shared() {
  const clock = new VirtualClock()
  const now = (): bigint => BigInt(Math.round(clock.now() * 1e6))
  const liveness = new Liveness(undefined, now)
  let wanted = true
  const proof = new Proof(clock, liveness, () => wanted)
  const forget = (): void => {
    wanted = false
  }
  return { clock, proof, seen: new Liveness(liveness.memory, now), forget }
}

test('while it is needed it is proven ten times within the limit', async () => {
  const { clock, proof, seen } = shared()
  proof.keep(1_000)
  for (let i = 0; i < 50; i += 1) {
    await clock.advance(33)
    expect(seen.sinceProof).toBeLessThanOrEqual(100)
  }
})

test('the shortest limit decides, and half a second at most passes', async () => {
  const { clock, proof, seen } = shared()
  proof.keep(60_000)
  await clock.advance(499)
  expect(seen.sinceProof).toBe(499)
  await clock.advance(1)
  expect(seen.sinceProof).toBe(0)
  proof.keep(50)
  proof.keep(60_000)
  await clock.advance(1_004)
  expect(seen.sinceProof).toBe(4)
})

test('a blocked event loop proves nothing', async () => {
  const { clock, proof, seen } = shared()
  proof.keep(1_000)
  await clock.advance(250)
  clock.block(3_000).catch(() => {}) // the time has passed when this returns, and no timer has run
  expect(seen.sinceProof).toBe(3_050)
})

test('when it is not needed no timer is left', async () => {
  const { clock, proof, forget } = shared()
  proof.keep(1_000)
  forget()
  await clock.advance(100)
  expect(clock.pending).toBe(0)
})

test('it reports which events have subscribers', () => {
  const { proof, seen } = shared()
  proof.give()
  expect([seen.isSubscribed('heartbeat'), seen.isSubscribed('heartbeat_failed')]).toEqual([false, false])
  const stop = subscribe('heartbeat', () => {})
  proof.give()
  expect([seen.isSubscribed('heartbeat'), seen.isSubscribed('heartbeat_failed')]).toEqual([true, false])
  stop()
  const stopAgain = subscribe('heartbeat_failed', () => {})
  proof.give()
  expect([seen.isSubscribed('heartbeat'), seen.isSubscribed('heartbeat_failed')]).toEqual([false, true])
  stopAgain()
})
