import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../src/lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../src/lab/servers/zookeeper.ts'
import { Group } from '../../src/stores/zookeeper/group.ts'
import { Paths } from '../../src/stores/zookeeper/paths.ts'
import { systemClock } from '../../src/time.ts'
import { claimOf, hold, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

test('of the waiters of a node only those are told that it went who still wait', async () => {
  await using others = storeOf(server)
  const holder = claimOf('held')
  await hold(others, holder)
  const told: string[] = []
  const settings = {
    ensemble: { servers: [server], tls: undefined, auth: undefined },
    paths: new Paths('', 'holdfast'),
    acl: { permissions: 31, scheme: 'world', id: 'anyone' },
    clock: systemClock(),
  }
  const group = new Group(settings, 10_000, id => told.push(id))
  const connection = await group.connection(0)
  const claims = [claimOf('held'), claimOf('held')] as const
  const [gone, waits] = claims
  for (const claim of claims) {
    const { place, line } = await group.put(connection, claim, 'w')
    if (line.holder) expect(await group.arm(connection, 'held', line.holder, claim.id, 0)).toBe(true)
    if (claim === gone) group.forget(place)
  }
  await others.release(holder, signal)
  await until('they are told', () => told.length > 0)
  expect(told).toEqual([waits.id])
  await group.close()
})
