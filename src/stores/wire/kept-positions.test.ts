import { expect, test } from 'vitest'
import type { Claim } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { KeptPositions } from './kept-positions.ts'

const claim: Claim = { name: 'a', id: '1', owner: 'me', ttl: 10_000, note: '', queue: true }
const state = { grantAt: 10_000, rank: 0 }

test('releases prompt the waiter again after a grant that it did not accept', () => {
  const clock = new VirtualClock()
  const keep = (): Promise<never> => new Promise(() => {})
  const places = new KeptPositions(clock, { most: 100, keep })
  let woken = 0
  places.told(claim, state)
  places.add(claim, () => (woken += 1))
  places.prompt('a')
  expect(woken).toBe(1)
  places.told(claim, state)
  places.prompt('a') // in vain before, so this one prompts nobody
  expect(woken).toBe(1)
  places.prompt('a')
  expect(woken).toBe(2)
  places.granted(claim)
  places.prompt('a')
  expect(woken).toBe(3)
  places.close()
})

test('all waiters ask if their positions cannot be kept', async () => {
  const clock = new VirtualClock()
  const places = new KeptPositions(clock, { most: 100, keep: () => Promise.reject(new Error('down')) })
  const woken: string[] = []
  for (const id of ['1', '2']) {
    places.told({ ...claim, id }, { ...state, grantAt: 60_000 })
    places.add({ ...claim, id }, () => woken.push(id))
  }
  await clock.advance(2_000)
  expect(woken).toEqual(['1', '2'])
  places.close()
})

test('the end of an earlier watch of a claim leaves the later one', async () => {
  const clock = new VirtualClock()
  const places = new KeptPositions(clock, { most: 100, keep: () => new Promise(() => {}) })
  const first = (): void => {}
  let woken = 0
  places.add(claim, first)
  places.add(claim, () => (woken += 1))
  places.remove(claim, first)
  places.prompt('a')
  expect(woken).toBe(1)
  places.close()
})

test('a waiter that was told to wait on is woken again when the next lease ends', async () => {
  const clock = new VirtualClock()
  const places = new KeptPositions(clock, { most: 100, keep: () => new Promise(() => {}) })
  let woken = 0
  places.told(claim, { grantAt: clock.now() + 1_000, rank: 0 })
  places.add(claim, () => (woken += 1))
  await clock.advance(1_000)
  expect(woken).toBe(1)
  places.told(claim, { grantAt: clock.now() + 1_000, rank: 0 })
  await clock.advance(1_000)
  expect(woken).toBe(2)
  places.close()
})

test('a release that may not have seen a new position is looked for at once', async () => {
  const clock = new VirtualClock()
  let asked = 0
  const keep = (): Promise<never> => new Promise(() => (asked += 1))
  const places = new KeptPositions(clock, { most: 100, keep })
  places.told(claim, { grantAt: clock.now() + 9_000, rank: 0, isUnseen: true })
  places.add(claim, () => {})
  await clock.advance(0)
  expect(asked).toBe(1)
  places.close()
})
