import { monitorEventLoopDelay } from 'node:perf_hooks'
import { expect, test } from 'vitest'
import { startEtcd } from '../../lab/servers/etcd.ts'
import { startPostgres } from '../../lab/servers/postgres.ts'
import { startRedis } from '../../lab/servers/redis.ts'
import { until } from '../../lab/servers/until.ts'
import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import { connect, type Lease } from '../../src/index.ts'
import { type Fault, limits } from './table.ts'

const GIVEN = { ttl: 9_000, wait: 500, grace: 300, timeout: 1_500 }

/** Milliseconds of tolerance for timers and messages of a busy machine. The longest delay of its event loop is added. */
const SLACK = 1_000

interface Server {
  kill(): Promise<void>
  pause(): Promise<void>
  resume(): void
  stop(): Promise<void>
}

interface Engine {
  readonly url: string
  readonly servers: readonly Server[]
}

const ENGINES: Readonly<Record<string, () => Promise<Engine>>> = {
  async redis() {
    const server = await startRedis()
    return { url: server.url, servers: [server] }
  },
  async redlock() {
    const servers = [await startRedis(), await startRedis(), await startRedis()]
    return { url: `redlock://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}?maxTtl=${GIVEN.ttl}`, servers }
  },
  async postgres() {
    const server = await startPostgres()
    return { url: `${server.url()}?create=true`, servers: [server] }
  },
  async etcd() {
    const server = await startEtcd()
    return { url: `etcd://${server.endpoint}`, servers: [server] }
  },
  async zookeeper() {
    const server = await startZooKeeper()
    return { url: `zookeeper://127.0.0.1:${server.port}`, servers: [server] }
  },
}

/** By row of the table: the milliseconds that the call took. */
class Times {
  readonly taken = new Map<string, number>()
  readonly #loopDelay = monitorEventLoopDelay({ resolution: 10 })

  begin(): void {
    this.#loopDelay.enable()
  }

  /** The delay of the event loop. */
  get longestDelay(): number {
    return this.#loopDelay.max / 1e6
  }

  async measure(call: string, work: () => unknown): Promise<unknown> {
    const began = performance.now()
    let end: unknown
    try {
      end = await work()
    } catch (error) {
      end = error
    }
    this.taken.set(call, performance.now() - began)
    return end
  }
}

const CASES = Object.keys(ENGINES).flatMap(engine =>
  (['killed', 'unresponsive'] as const).map(fault => ({ engine, fault })),
)

const TITLE = 'S5: over $engine, $fault, no call takes longer than docs/operations/time-limits.md says'

test.concurrent.for(CASES)(TITLE, { timeout: 180_000 }, async ({ engine, fault }) => {
  const { url, servers } = await (ENGINES[engine] as () => Promise<Engine>)()
  try {
    const times = await timesOf(url, fault, servers)
    const table = limits(GIVEN)
    expect([...times.taken.keys()].sort()).toEqual([...table.keys()].sort())
    const slack = SLACK + times.longestDelay
    const late = [...times.taken].filter(([call, taken]) => taken > (table.get(call)?.[fault] as number) + slack)
    expect(late).toEqual([])
  } finally {
    if (fault === 'unresponsive') for (const server of servers) server.resume()
    await Promise.all(servers.map(server => server.stop()))
  }
})

/** Measures each call from the fault on. */
async function timesOf(url: string, fault: Fault, servers: readonly Server[]): Promise<Times> {
  const times = new Times()
  const measure = times.measure.bind(times)
  const { ttl, wait, grace, timeout } = GIVEN
  const [locks, closed] = [await connect(url, { ttl }), await connect(url, { ttl })]
  const names = ['released', 'extended', 'annotated', 'lost', 'disposed']
  const [released, extended, annotated, lost, disposed] = (await Promise.all(
    names.map(name => locks.acquire(name)),
  )) as [Lease, Lease, Lease, Lease, Lease]
  await closed.acquire('closed')
  const overlong = await locks.acquire('overlong', { maxHold: 100 })
  const [held, tooLong] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  let begun = 0
  const inWork = (): Promise<string> => {
    begun += 1
    return held.promise
  }
  const inTime = locks.using('held', inWork)
  const onceInTime = locks.once('run', { within: ttl }, inWork)
  onceInTime.catch(() => {}) // if the test fails before it is measured
  const overdue: Lease[] = []
  const tooLate = locks.using('too long', lease => {
    overdue.push(lease)
    return tooLong.promise
  })
  const term = locks.lead('led')[Symbol.asyncIterator]()
  await term.next()
  const [proclaiming, resigning] = [locks.election('proclaimed'), locks.election('resigned')]
  const untilTold = ({ signal }: Lease) => new Promise(resolve => signal.addEventListener('abort', resolve))
  for (const election of [proclaiming, resigning]) void election.run(untilTold).catch(() => {})
  await until('both works have begun', () => begun === 2)
  await until('both lead', () => [proclaiming, resigning].every(election => election.health().state === 'leading'))
  await until('the lease is over', () => overlong.remaining === 0)

  await Promise.all(servers.map(server => (fault === 'killed' ? server.kill() : server.pause())))
  times.begin()
  const waits = measure('`locks.acquire(name)`', () => locks.acquire('a'))
  held.resolve('result')
  await Promise.all([
    measure('`connect(url, { timeout })`', () => connect(url, { timeout })),
    measure('`connect(url, { lazy: true })`', () => connect(url, { lazy: true }).then(() => {})),
    measure('`locks.ping()`', () => locks.ping()),
    measure('`locks.acquire(name, { wait })`', () => locks.acquire('b', { wait })),
    measure('`locks.acquire(name, { wait: 0 })`', () => locks.acquire('c', { wait: 0 })),
    measure('`locks.tryAcquire(name)`', () => locks.tryAcquire('d')),
    measure('`locks.once(name, options, work)`', () => locks.once('m', { within: ttl }, async () => {})),
    measure('`locks.all(names).acquire()`', () => locks.all(['g', 'h']).acquire()),
    measure('`locks.all(names).acquire({ wait })`', () => locks.all(['i', 'j']).acquire({ wait })),
    measure('`locks.all(names).tryAcquire()`', () => locks.all(['k', 'l']).tryAcquire()),
    measure('`locks.inspect(name)`', () => locks.inspect('e')),
    measure('`locks.list()`, for each record', () => locks.list()[Symbol.asyncIterator]().next()),
    measure('`locks.break(name)`', () => locks.break('f')),
    measure('end of `locks.using`, lease held', () => inTime).then(end => expect(end).toBe('result')),
    measure('end of `locks.once`, lease held', () => onceInTime).then(end => expect(end).toMatchObject({ ran: true })),
    measure('`lease.extend()`', () => extended.extend()),
    measure('`lease.annotate(note)`', () => annotated.annotate('note')),
    measure('`lease.release()`, lease held', () => released.release()).then(end => expect(end).toBe('unknown')),
    measure('`lease.release()` after `maxHold`', () => overlong.release()).then(end => expect(end).toBe('lost')),
    measure('leaving `locks.lead`', () => term.return?.()),
    measure('`election.leader()`', () => proclaiming.leader()),
    measure('`election.proclaim(note)`', () => proclaiming.proclaim('note')),
    measure('`election.resign()`, after the work', () => resigning.resign()),
    measure('`locks.close({ grace })`', () => closed.close({ grace })),
  ])
  await Promise.all([lost, disposed, ...overdue].map(({ ended }) => ended))
  await measure('`lease.release()`, lease lost', () => lost.release()).then(end => expect(end).toBe('lost'))
  await measure('end of `await using`, lease lost', () => disposed[Symbol.asyncDispose]())
  tooLong.resolve('result')
  const end = await measure('end of `locks.using`, lease lost', () => tooLate)
  expect(end).toMatchObject({ code: 'LEASE_LOST', result: 'result' })
  await waits
  await locks.close({ grace: 0 })
  return times
}
