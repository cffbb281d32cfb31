import { expect, test } from 'vitest'
import { claimOf, hold, look, signal } from '../../../test/support.ts'
import type { Claim, Store } from '../../contract/store.ts'
import { keyOf } from './key.ts'
import { held, meanwhile, System } from './test/system.ts'

test('a read that lags ends no lease that was renewed meanwhile, where the register says that reads may lag', async () => {
  const system = Object.assign(new System(), { mayLag: true })
  const [one, two] = [system.start(), system.start()]
  const claim = claimOf('a')
  await hold(one, claim)
  expect(await held(two, claimOf('a', { queue: true }))).toBe(false)
  const before = new Map(system.records)
  await system.clock.advance(9_000)
  await one.renew(claim, signal)
  await system.clock.advance(2_000)
  const { read } = system
  system.read = async () => before.get(keyOf('a')) // of a leader that was replaced and does not know it
  expect(await look(two, { name: 'a' })).toEqual([])
  system.read = read
  expect(await held(two, claimOf('a', { queue: true }))).toBe(false)
  expect(await look(two, { name: 'a' })).toMatchObject([{ state: 'held' }, { state: 'waiting' }])
})

test.each<[string, (store: Store, claim: Claim) => Promise<unknown>, unknown]>([
  ['renewal', (store, claim) => store.renew(claim, signal), expect.objectContaining({ held: true })],
  ['note', (store, claim) => store.annotate(claim, signal), true],
  ['break', (store, { name }) => store.break(name, { by: 'test' }, signal), expect.any(BigInt)],
  ['release', (store, claim) => store.release(claim, signal), 'released'],
])('a %s does not take a lease for gone because a read lags', async (_, ask, answer) => {
  const system = Object.assign(new System(), { mayLag: true })
  const store = system.start()
  const earlier = claimOf('a')
  const lagging = [system.records.get(keyOf('a'))]
  await hold(store, earlier)
  await store.release(earlier, signal)
  lagging.push(system.records.get(keyOf('a')))
  const claim = claimOf('a')
  await hold(store, claim)
  const { read } = system
  for (const before of lagging) {
    system.read = async () => before // of a leader that was replaced and does not know it
    const asked = meanwhile(system, ask(system.start(), claim))
    await expect(asked).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
  }
  system.read = async () => {
    system.read = read
    return lagging.at(-1)
  }
  expect(await meanwhile(system, ask(system.start(), claim))).toEqual(answer)
})
