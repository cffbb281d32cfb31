/** Calls and faults at random, by seed. When they happen also depends on the machine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startProxy, type TcpProxy } from '../lab/servers/proxy.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'
import { LeaseError } from '../src/contract/errors.ts'
import { connect, type Locks } from '../src/index.ts'
import { Random } from './simulation/random.ts'
import { isFull } from './tier.ts'

/** Milliseconds. So nothing goes away by itself. */
const TTL = 60_000

/** Milliseconds between two faults of one network: a withdrawal has 5 s. */
const APART = 3_000

/** For each of three networks. */
const FAULTS = isFull ? 4 : 2

const engines: Record<
  string,
  () => Promise<{ server: AsyncDisposable & { port: number }; urlBy(port: number): string }>
> = {
  redis: async () => ({ server: await startRedis(), urlBy: port => `redis://127.0.0.1:${port}` }),
  postgres: async () => {
    const server = await startPostgres()
    return { server, urlBy: port => `${server.urlBy(port)}?create=true` }
  },
}

const cleanups: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function disturb(proxy: TcpProxy, random: Random): Promise<void> {
  const fault = random.pick(['silence', 'silence', 'reset', 'hold', 'refuse'])
  if (fault === 'silence') for (const pipe of [...proxy.up.pipes, ...proxy.down.pipes]) pipe.deafen()
  if (fault === 'hold') random.pick([proxy.up, proxy.down]).hold()
  if (fault === 'refuse') await proxy.refuse()
  if (fault === 'refuse' || fault === 'reset') proxy.reset()
  await sleep(random.integer(10, 600))
  await proxy.accept()
  for (const direction of [proxy.up, proxy.down]) direction.pass()
}

test.each([
  ['redis', 1],
  ['postgres', 2],
] as const)(
  '%s, seed %i: tokens rise, and no claim is left behind, through networks with faults',
  async (engine, seed) => {
    const random = new Random(seed)
    const { server, urlBy } = await (engines[engine] as (typeof engines)[string])()
    cleanups.push(() => server[Symbol.asyncDispose]())
    const judge = await connect(urlBy(server.port))
    cleanups.push(() => judge.close())
    const names = ['a', 'b']
    const last = new Map(await Promise.all(names.map(async name => [name, (await judge.acquire(name)).token] as const)))
    for (const name of names) await judge.break(name)
    let isOver = false
    let grants = 0
    const work = async (locks: Locks): Promise<void> => {
      while (!isOver) {
        const name = random.pick(names)
        const options = {
          wait: random.pick([0, 50, 500, 2_000]),
          signal: AbortSignal.timeout(random.integer(1, 3_000)),
        }
        const lease = await locks.acquire(name, options).catch(error => {
          if (!LeaseError.is(error) && error.name !== 'TimeoutError') throw error
        })
        if (!lease) continue
        grants += 1
        expect(lease.token).toBeGreaterThan(last.get(name) ?? 0n)
        last.set(name, lease.token)
        await sleep(random.integer(0, 30))
        await lease.release()
      }
    }
    const working: Promise<void>[] = []
    for (let client = 0; client < 3; client++) {
      const proxy = await startProxy(server)
      cleanups.push(() => proxy.stop())
      const locks = await connect(urlBy(proxy.port), { ttl: TTL })
      cleanups.push(() => locks.close({ grace: 0 }))
      working.push(work(locks), work(locks))
      const faults = async (): Promise<void> => {
        for (let fault = 0; fault < FAULTS; fault++) {
          await sleep(random.integer(APART, APART + 500))
          await disturb(proxy, random)
        }
      }
      working.push(faults().finally(() => setTimeout(() => (isOver = true), 1_000)))
    }
    await Promise.all(working)
    expect(grants).toBeGreaterThan(10)
    const left = async (): Promise<number> => (await Array.fromAsync(judge.list())).length
    await until('all claims are withdrawn', async () => (await left()) === 0, { limit: 10_000 })
  },
  60_000,
)
