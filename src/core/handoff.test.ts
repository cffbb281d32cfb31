/** A lease that a release granted while its claim waited (R15). */
import { expect, test } from 'vitest'
import { follow, type Rule, stage } from '../../test/scripted-store.ts'
import type { Busy, Grant } from '../contract/store.ts'
import { subscribe } from '../index.ts'

/** The first grant is a handoff. The store asks for the waiter. */
function handsOff(): Rule {
  let isFirst = true
  return async forward => {
    const answer = (await forward()) as Grant | Busy
    if (!answer.held) return { ...answer, kept: true, listens: true }
    const handoff = isFirst
    isFirst = false
    return { ...answer, handoff }
  }
}

test('its ttl counts from the last request with a busy answer, and maxHold from the grant', async () => {
  for (const [maxHold, remaining] of [
    [undefined, 3_000 - 32 - 600],
    [500, 500],
  ] as const) {
    const { locks, other, clock, store } = stage()
    const held = await other.acquire('a')
    store.rule('acquire', handsOff())
    const wait = follow(locks.acquire('a', { ttl: 3_000, maxHold }))
    await clock.advance(600)
    await held.release()
    await clock.advance(0)
    expect(wait.value?.remaining).toBeCloseTo(remaining, 0)
    expect(wait.value?.signal.aborted).toBe(false)
  }
})

test('one that is taken after more than a third of its ttl is asked for, which renews it', async () => {
  const { locks, other, clock, store } = stage()
  const held = await other.acquire('a')
  store.rule('acquire', handsOff())
  const requests: number[] = []
  using _ = { [Symbol.dispose]: subscribe('lease_acquired', event => requests.push(event.requests)) }
  const wait = follow(locks.acquire('a', { ttl: 3_000 }))
  await clock.advance(1_100)
  await held.release()
  await clock.advance(0)
  expect(wait.value?.remaining).toBeCloseTo(3_000 - 32, 0)
  expect(store.count('acquire')).toBe(3)
  expect(requests.at(-1)).toBe(2) // a handoff is no request
})
