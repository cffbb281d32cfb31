import { describe, expect, test } from 'vitest'
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

test.each([
  ['the connection is reset', async () => Promise.reject(new Error('the connection was reset')), async () => undefined],
  ['its copy finds another version', async () => new Promise<undefined>(() => {}), undefined],
])('a claim is not refused while an earlier write of it may have granted the name: %s', async (_, answer, later) => {
  const system = Object.assign(new System(), { mayLag: true })
  const [other, store] = [system.start(), system.start()]
  const earlier = claimOf('a', { ttl: 60_000 })
  await hold(other, earlier)
  const before = system.records.get(keyOf('a'))
  await other.release(earlier, signal)
  await look(store, { name: 'a' })
  const [{ read, write }, claim] = [system, claimOf('a')]
  system.write = async (...parameters) => {
    await write.apply(system, parameters)
    system.read = async () => before // of a leader that was replaced and does not know it
    system.write = later ?? write
    return answer()
  }
  const asked = meanwhile(system, store.acquire(claim, signal))
  await expect(asked).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: true })
  Object.assign(system, { read, write })
  expect(await look(store, { name: 'a' })).toMatchObject([{ owner: claim.owner, state: 'held' }])
})

describe('a process that knows a newer record than it reads', () => {
  interface Known {
    readonly system: System
    readonly store: Store
    readonly claim: Claim
    readonly before: ReturnType<System['records']['get']>
  }

  /** A process that was granted `claim` while another one waits, and what was stored before the grant. */
  async function start({ ttl = 10_000, isFirst = false } = {}): Promise<Known> {
    const system = Object.assign(new System(), { mayLag: true })
    const [store, other] = [system.start(), system.start()]
    const [earlier, claim] = [claimOf('a'), claimOf('a', { ttl, queue: true })]
    await hold(other, earlier)
    expect(await held(store, claim)).toBe(false)
    expect(await held(other, claimOf('a', { queue: true }))).toBe(false)
    const before = isFirst ? undefined : system.records.get(keyOf('a'))
    await other.release(earlier, signal)
    await hold(store, claim)
    await system.clock.advance(1_000) // now it reads before it decides
    return { system, store, claim, before }
  }

  test.each([false, true])('renews its lease (and reads none: %s)', async isFirst => {
    const { system, store, claim, before } = await start({ isFirst })
    system.read = async () => before // of a leader that was replaced and does not know it
    await look(store, { name: 'a' })
    for (let ms = 0; ms < 20_000; ms += 5_000) {
      await system.clock.advance(5_000)
      expect(await meanwhile(system, store.renew(claim, signal))).toMatchObject({ held: true })
    }
  })

  test('learns the older one once a write fails', async () => {
    const { system, store, claim, before } = await start()
    if (before) system.records.set(keyOf('a'), before) // as after a restore, or in a bucket that was created again
    expect(await meanwhile(system, store.renew(claim, signal))).toBeUndefined()
    expect(await look(store, { name: 'a' })).toMatchObject([
      { state: 'held' },
      { state: 'waiting' },
      { state: 'waiting' },
    ])
  })

  test('learns the older one once no read can lag so long', async () => {
    const { system, store, before } = await start({ ttl: 60_000 })
    if (before) system.records.set(keyOf('a'), before)
    expect(await held(store, claimOf('a'))).toBe(false)
    await system.clock.advance(30_000)
    expect(await held(store, claimOf('a'))).toBe(false) // for it, the earlier lease begins now
    await system.clock.advance(10_000)
    expect(await held(store, claimOf('a'))).toBe(true)
  })
})
