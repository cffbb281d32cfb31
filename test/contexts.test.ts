import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newFolder } from '../lab/servers/folder.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'
import { connect, type Locks, migrate, subscribe } from '../src/index.ts'
import { collect } from './garbage.ts'

interface Request {
  readonly name: string
}

const requests = new AsyncLocalStorage<Request>()
const where = (): string => requests.getStore()?.name ?? 'none'

const ENGINES = [
  { engine: 'memory', start: async () => 'memory:', hasServer: false },
  { engine: 'SQLite', start: async () => `sqlite:${join(newFolder('contexts'), 'leases.db')}`, hasServer: false },
  {
    engine: 'Redis',
    start: async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      return server.url
    },
    hasServer: true,
  },
  {
    engine: 'PostgreSQL',
    start: async () => {
      const server = await startPostgres()
      onTestFinished(() => server.stop())
      await migrate(server.url())
      return server.url()
    },
    hasServer: true,
  },
]

/** By what runs: the requests in whose context it did. */
class Seen {
  readonly #contexts = new Map<string, Set<string>>()

  note(what: string): void {
    const contexts = this.#contexts.get(what) ?? new Set()
    this.#contexts.set(what, contexts.add(where()))
  }

  get table(): Record<string, string[]> {
    return Object.fromEntries([...this.#contexts].map(([what, contexts]) => [what, [...contexts]]))
  }
}

async function open(url: string): Promise<Locks> {
  const locks = await connect(url, { ttl: 3_000 })
  onTestFinished(() => locks.close())
  return locks
}

test.each(ENGINES)(
  'renewals and connections are in no request; what a request waits for is in it ($engine)',
  async row => {
    const seen = new Seen()
    const url = await row.start()
    const connectTo = Socket.prototype.connect
    const connecting = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket, ...args) {
      seen.note('connection')
      return connectTo.apply(this, args as never)
    })
    onTestFinished(() => connecting.mockRestore())
    const locks = await open(url)
    const renew = locks.store.renew.bind(locks.store)
    vi.spyOn(locks.store, 'renew').mockImplementation((claim, signal) => {
      seen.note('renewal')
      return renew(claim, signal)
    })
    onTestFinished(subscribe('heartbeat', () => seen.note('heartbeat')))
    onTestFinished(subscribe('self_wait', () => seen.note('warning of a self-wait')))

    await requests.run({ name: 'first' }, () => locks.using('other', async () => seen.note('work')))
    const holder = await requests.run({ name: 'holder' }, async () => {
      const lease = await locks.acquire('a')
      lease.signal.addEventListener('abort', () => seen.note('abort'))
      return lease
    })
    const set = await requests.run({ name: 'holder' }, async () => {
      const leases = await locks.all(['b', 'c']).acquire()
      leases.signal.addEventListener('abort', () => seen.note('abort of a set'))
      return leases
    })
    const waiting = requests.run({ name: 'waiter' }, async () => {
      const lease = await locks.acquire('a')
      seen.note('acquired')
      return lease
    })
    await until('it is renewed, and warned', () => 'heartbeat' in seen.table && 'warning of a self-wait' in seen.table)
    await Promise.all([locks.break('a'), locks.break('b')])
    const next = await waiting
    await until('the losses are known', () => holder.signal.aborted && set.signal.aborted)
    await next.release()

    expect(seen.table).toEqual({
      work: ['first'],
      ...(row.hasServer && { connection: ['none'] }),
      renewal: ['none'],
      heartbeat: ['none'],
      'warning of a self-wait': ['waiter'],
      acquired: ['waiter'],
      abort: ['holder'],
      'abort of a set': ['holder'],
    })
  },
)

test.each(ENGINES)('what the first request stored is collected while leases are held ($engine)', async ({ start }) => {
  const locks = await open(await start())
  const first = await request(locks)
  const lease = await locks.acquire('b')
  await until('what the request stored is collected', () => {
    collect()
    return first.deref() === undefined
  })
  lease.assertHeld()
})

/** Acquires, waits, and is renewed, in its own context. */
async function request(locks: Locks): Promise<WeakRef<Request>> {
  const stored = { name: 'first' }
  await requests.run(stored, async () => {
    const lease = await locks.acquire('a')
    await locks.acquire('a', { wait: 50 }).catch(() => {})
    const { heartbeats } = locks.advice()
    await until('it is renewed', () => locks.advice().heartbeats > heartbeats)
    await lease.release()
  })
  return new WeakRef(stored)
}
