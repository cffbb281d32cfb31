import { expect, test } from 'vitest'
import type { Claim } from '../../contract/store.ts'
import { VirtualClock } from '../../testing/clock.ts'
import { Places } from './places.ts'

const claim: Claim = { name: 'a', id: '1', owner: 'me', ttl: 10_000, note: '', queue: true }
const state = { freeAt: 10_000, rank: 0 }

test('releases prompt the waiter again after a grant that it did not accept', () => {
  const clock = new VirtualClock()
  const keep = (): Promise<never> => new Promise(() => {})
  const places = new Places(clock, { most: 100, keep }, () => {})
  let woken = 0
  places.told(claim, state)
  places.add(claim, () => (woken += 1))
  places.prompt('a', 'released')
  expect(woken).toBe(1)
  places.told(claim, state)
  places.prompt('a', 'released') // in vain before, so this one prompts nobody
  expect(woken).toBe(1)
  places.prompt('a', 'released')
  expect(woken).toBe(2)
  places.granted(claim)
  places.prompt('a', 'released')
  expect(woken).toBe(3)
  places.close()
})
