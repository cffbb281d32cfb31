import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Connection } from '../../../src/stores/zookeeper/connection.ts'
import { isRefused } from '../../../src/stores/zookeeper/failure.ts'
import { code, create, exists } from '../../../src/stores/zookeeper/protocol.ts'
import { type ShiftedClock, startClock } from '../clock.ts'
import { startRedis } from '../redis.ts'
import { until } from '../until.ts'
import { startZooKeeper } from '../zookeeper.ts'

let clock: ShiftedClock
beforeEach(() => {
  clock = startClock()
})
afterEach(() => clock.stop())

test('a jump of the wall clock expires a key of a stock Redis', async () => {
  await using server = await startRedis({ clock })
  await server.call('SET', 'name', 'value', 'PX', 10_000)
  expect(await server.call('GET', 'name')).toBe('value')
  clock.jumpWall(30_000)
  expect(await server.call('GET', 'name')).toBeNull()
})

test('a jump back of the wall clock lets a key live longer', async () => {
  await using server = await startRedis({ clock })
  await server.call('SET', 'name', 'value', 'PX', 10_000)
  clock.jumpWall(-30_000)
  expect(await server.call('PTTL', 'name')).toBeGreaterThan(30_000)
})

test('a jump of the monotonic clock alone expires nothing in Redis', async () => {
  await using server = await startRedis({ clock })
  await server.call('SET', 'name', 'value', 'PX', 10_000)
  clock.jumpMonotonic(30_000)
  expect(await server.call('GET', 'name')).toBe('value')
})

test('what waits in a Java program waits for no longer after its clock was set forward', async () => {
  await using server = await startZooKeeper({ clock })
  clock.jumpMonotonic(60_000)
  const session = { timeout: 1_000, id: 0n, password: new Uint8Array(16), lastZxid: 0n }
  const connect = (): Promise<Connection> =>
    Connection.open(server, { tls: undefined, auth: undefined }, session, 2_000)
  const connection = await connect()
  const acl = { permissions: 31, scheme: 'world', id: 'anyone' } as const
  await connection.send(create('/mine', '', acl, 'ephemeral'))
  connection.end(new Error('it dies'))
  const other = await connect()
  const isGone = (): Promise<boolean> =>
    other.send(exists('/mine')).then(
      () => false,
      error => isRefused(error, code.noNode),
    )
  await until('its session ends, for which the server sleeps', isGone, { every: 100 })
  other.end(new Error('the test is over'))
})

test('a Node process sees each clock jump on its own, and both when it seems to have slept', async () => {
  const script = `process.stdin.on('data', () => process.stdout.write(JSON.stringify([Date.now(), performance.now()])))`
  const child = spawn(process.execPath, ['-e', script], {
    env: { ...process.env, ...clock.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const hours = async (): Promise<number[]> => {
    child.stdin.write('?')
    const [[line]] = await Promise.all([once(child.stdout, 'data')])
    const [wall = 0, monotonic = 0] = JSON.parse(String(line)) as number[]
    return [(wall - Date.now()) / 3_600_000, monotonic / 3_600_000].map(hour => Math.round(hour) + 0)
  }
  expect(await hours()).toEqual([0, 0])
  clock.jumpWall(-2 * 3_600_000)
  expect(await hours()).toEqual([-2, 0])
  clock.jumpMonotonic(5 * 3_600_000)
  expect(await hours()).toEqual([-2, 5])
  clock.jump(3 * 3_600_000)
  expect(await hours()).toEqual([1, 8])
  child.stdin.end()
  await once(child, 'exit')
})
