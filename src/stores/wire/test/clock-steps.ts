import { expect, test } from 'vitest'
import type { ShiftedClock } from '../../../../lab/servers/clock.ts'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, hold, look, signal } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'

export const HOUR = 3_600_000

/** A test of two stores of one server: that of the first waiter, which may be paused, and that of the next. */
export function wakesAfterStep(
  stage: () => { readonly stores: readonly [Store, Store]; readonly clock: ShiftedClock },
): void {
  test('R9: the next waiter is woken as well as the first, although the clock was set back since that one asked', async () => {
    const { stores, clock } = stage()
    const holder = claimOf('both')
    await hold(stores[0], holder)
    const woken = new Set<Store>()
    for (const store of stores) {
      const claim = claimOf('both', { queue: true, ttl: 60_000 })
      await acquire(store, claim)
      await acquire(store, claim) // else one that is kept looks at once whether it missed a release
      await store.watch?.(claim, () => woken.add(store), signal)
    }
    clock.jumpWall(-HOUR)
    woken.clear()
    await stores[0].release(holder, signal)
    await until('both are woken', async () => woken.size === 2, { limit: 3_000 }) // by itself the next asks after 10 s
  })
}

/** Tests of a store whose leases end by the wall clock of its server. `stage`: the store and that clock. */
export function clockSteps(stage: () => { readonly store: Store; readonly clock: ShiftedClock }): void {
  test.each([false, true])(
    'a lease lasts no longer than its ttl once another asks, after the clock was set back (asked for again: %s)',
    async isAskedAgain => {
      const { store, clock } = stage()
      const claim = claimOf(`long ${isAskedAgain}`, { ttl: 2_000 })
      const token = await hold(store, claim)
      await hold(store, claimOf(`free ${isAskedAgain}`))
      clock.jumpWall(-HOUR)
      if (isAskedAgain) expect(await hold(store, claim)).toBe(token)
      const asked = performance.now()
      const next = claimOf(claim.name, { queue: true })
      expect(await acquire(store, next)).toMatchObject({ held: false })
      await until('it is passed on', async () => (await acquire(store, next)).held)
      expect(performance.now() - asked).toBeGreaterThan(1_900)
    },
  )

  test('a waiter that asks again lasts no longer than its ttl, after the clock was set back', async () => {
    const { store, clock } = stage()
    const waiter = claimOf('waits', { queue: true })
    await hold(store, claimOf('waits'))
    await acquire(store, waiter)
    clock.jumpWall(-HOUR)
    await acquire(store, waiter)
    const [, waiting] = await look(store, { name: 'waits' })
    expect(waiting?.remaining).toBeLessThanOrEqual(waiter.ttl)
  })

  test('a name that was released before the clock was set back is free at once, and its queue is served', async () => {
    const { store, clock } = stage()
    const [holder, first, second] = [
      claimOf('left'),
      claimOf('left', { queue: true }),
      claimOf('left', { queue: true }),
    ]
    await hold(store, holder)
    await acquire(store, first)
    await acquire(store, second)
    await store.release(holder, signal)
    clock.jumpWall(-HOUR)
    await until('the second is served although the first is dead', async () => (await acquire(store, second)).held)
  })

  test('a request is not refused because the clock of the server was set forward', async () => {
    const { store, clock } = stage()
    const claim = claimOf('forward', { ttl: 5 * HOUR })
    const token = await hold(store, claim)
    clock.jumpWall(HOUR)
    expect(await store.renew(claim, signal)).toMatchObject({ token })
    clock.jumpWall(HOUR)
    await hold(store, claimOf('after'))
    clock.jumpWall(HOUR)
    expect(await store.break('forward', { by: 'test' }, signal)).toBeGreaterThan(token)
  })

  test('a step forward ends leases early, and their holders notice at the next renewal', async () => {
    const { store, clock } = stage()
    const claim = claimOf('early')
    await hold(store, claim)
    clock.jumpWall(HOUR)
    expect(await store.renew(claim, signal)).toBeUndefined()
    expect(await look(store, { name: 'early' })).toEqual([])
  })
}
