import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startEtcd } from '../../../lab/servers/etcd.ts'
import { newFolder } from '../../../lab/servers/folder.ts'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { startZooKeeper } from '../../../lab/servers/zookeeper.ts'
import { countRoundTrips } from '../../../test/round-trips.ts'
import { Random } from '../../../test/simulation/random.ts'
import { isFull } from '../../../test/tier.ts'
import { NODE } from '../../cli/test/holdfast.ts'
import { connect, type Locks } from '../../index.ts'

const HOLDER = fileURLToPath(new URL('./set-holder.ts', import.meta.url))
const roundTrips = countRoundTrips()

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => void (await server.stop()))

/** A server until the tests of its engine end; resolves to its URL. */
type Start = () => Promise<{ readonly url: string; readonly stop?: () => Promise<unknown> }>

const stores: readonly [string, Start][] = [
  ['SQLite', async () => ({ url: `sqlite:${join(newFolder('sets'), 'leases.db')}` })],
  ['Redis', async () => ({ url: server.url })],
  // Sets are made of leases, which the conformance suite tests over every store.
  ...(isFull ? others() : []),
]

function others(): [string, Start][] {
  return [
    [
      'PostgreSQL',
      async () => {
        const own = await startPostgres()
        return { url: `${own.url()}?create=true`, stop: () => own.stop() }
      },
    ],
    [
      'MySQL',
      async () => {
        const own = await startMariaDb()
        return { url: `${own.url()}?create=true`, stop: () => own.stop() }
      },
    ],
    [
      'etcd',
      async () => {
        const own = await startEtcd()
        return { url: `etcd://${own.endpoint}`, stop: () => own.stop() }
      },
    ],
    [
      'ZooKeeper',
      async () => {
        const own = await startZooKeeper()
        return { url: `zookeeper://${own.host}:${own.port}`, stop: () => own.stop() }
      },
    ],
    [
      'Redlock',
      async () => {
        const own = await Promise.all([startRedis(), startRedis(), startRedis()])
        const url = `redlock://${own.map(({ port }) => `127.0.0.1:${port}`).join(',')}?maxTtl=5000`
        return { url, stop: () => Promise.all(own.map(each => each.stop())) }
      },
    ],
  ]
}

async function open(url: string, ttl: number): Promise<Locks> {
  const locks = await connect(url, { ttl })
  onTestFinished(() => locks.close({ grace: 0 }))
  return locks
}

describe.each(stores)('over %s', (_, start) => {
  let url: string
  let stop: (() => Promise<unknown>) | undefined
  beforeAll(async () => {
    ;({ url, stop } = await start())
  })
  afterAll(() => stop?.())

  test('sets that share names take turns, in whatever order the names are given, and all are served', async () => {
    const clients = [await open(url, 5_000), await open(url, 5_000)]
    const random = new Random(7)
    const names = ['a', 'b', 'c', 'd', 'e'].map(name => `turns:${name}`)
    const holders = new Map<string, number>()
    const tokens = new Map<string, bigint>()
    let served = 0
    const task = async (index: number): Promise<void> => {
      const locks = clients[index % clients.length] as Locks
      for (let turn = 0; turn < 5; turn += 1) {
        const wanted = Array.from({ length: random.integer(1, 4) }, () => random.pick(names))
        await locks.all(wanted).using(async set => {
          for (const { name, token } of set.leases) {
            expect(holders.get(name), name).toBeUndefined()
            holders.set(name, index)
            expect(token).toBeGreaterThan(tokens.get(name) ?? 0n)
            tokens.set(name, token)
          }
          await sleep(random.between(0, 5))
          for (const name of set.names) holders.delete(name)
        })
        served += 1
      }
    }
    await Promise.all(Array.from({ length: 20 }, (__, index) => task(index)))
    expect(served).toBe(100)
    expect(await Array.fromAsync((clients[0] as Locks).list('turns:'))).toEqual([])
  })

  test('a process that is killed while it holds a set frees all of its names after the ttl', async () => {
    const locks = await open(url, 5_000)
    const [node = '', ...options] = NODE
    const child = spawn(node, [...options, HOLDER, url, '1000', 'killed:a', 'killed:b', 'killed:c'])
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const before = String(line).trim().split(' ').map(BigInt)
    const set = locks.all(['killed:c', 'killed:a', 'killed:b'])
    expect(await set.tryAcquire()).toBeUndefined()
    child.kill('SIGKILL')
    const { leases } = await set.acquire({ wait: 10_000 })
    const after = ['killed:a', 'killed:b', 'killed:c'].map(name => leases.find(lease => lease.name === name)?.token)
    for (const [index, token] of after.entries()) expect(token).toBeGreaterThan(before[index] as bigint)
  })

  test('a lease that is broken while another is awaited makes the wait begin anew', async () => {
    const [locks, other] = [await open(url, 5_000), await open(url, 5_000)]
    const blocker = await other.acquire('anew:b')
    const waiting = locks.all(['anew:b', 'anew:a']).acquire({ wait: 20_000 })
    const tokens: bigint[] = []
    const isHeldAgain = async (): Promise<boolean> => {
      const token = (await other.inspect('anew:a')).holders[0]?.token
      if (token !== undefined && token !== tokens.at(-1)) tokens.push(token)
      return token !== undefined && tokens.length === expected
    }
    let expected = 1
    await until('the first name is held', isHeldAgain)
    await other.break('anew:a')
    expected = 2
    await until('it is held again', isHeldAgain)
    await blocker.release()
    const set = await waiting
    set.assertHeld()
    expect(set.leases.find(({ name }) => name === 'anew:a')?.token).toBe(tokens[1])
    await set.release()
  })
})

test('free names cost one round trip to acquire and one to release, however many they are', async () => {
  const locks = await open(server.url, 60_000)
  await locks.using('warm', async () => {})
  for (const count of [2, 10, 64]) {
    const names = Array.from({ length: count }, (_, index) => `cost:${index}`)
    const before = roundTrips()
    const set = await locks.all(names).acquire()
    expect(roundTrips() - before).toBe(1)
    expect(await set.release()).toBe('released')
    expect(roundTrips() - before).toBe(2)
  }
})
