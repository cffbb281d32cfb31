import { expect, test } from 'vitest'
import { until } from '../../lab/servers/until.ts'
import { createLocks } from '../../src/index.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { Holding } from '../shared/term.ts'
import { bind, Lock, type Locking } from './lock.ts'

test.each([
  ['that lasts longer than a grant', false],
  ['within `using`', true],
])('a lock %s ends with its lease: then the expiration is past', async (_, isOpenEnded) => {
  const store = memory()
  const guarantees = { ...store.guarantees, maxUnattended: 50 } // as over several servers, where it is 30 s
  await using locks = createLocks(store)
  const lease = await locks.acquire('long', { ttl: 50, heartbeat: false })
  const unused = new Lock({} as Locking, ['long'], 'value', [], Date.now() + 60_000)
  const lock = bind(unused, new Holding(lease, guarantees, isOpenEnded))
  expect(lock.expiration).toBeGreaterThan(Date.now())
  await until('its lease has ended', () => lease.remaining === 0) // nobody has renewed it
  expect(lock.expiration).toBeLessThan(Date.now())
})
