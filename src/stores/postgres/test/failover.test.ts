import { Pool } from 'pg'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { startProxy } from '../../../../lab/servers/proxy.ts'
import { until } from '../../../../lab/servers/until.ts'
import { Stack } from '../../../../test/harnesses/stack.ts'
import { createLocks, type Locks } from '../../../index.ts'
import { followsTheAddress } from '../../wire/test/moved-address.ts'
import { migrate, postgres } from '../index.ts'
import { failureOf } from './support.ts'

const ttl = 20_000

/** Servers are slow to start on a busy machine. */
const limit = 60_000

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let stack: Stack

beforeEach(() => {
  stack = new Stack()
})
afterEach(() => stack.end())

const config = { fsync: 'off' }

/** A primary and its standby behind one address, which leads to the primary first. */
async function startPair() {
  const primary = stack.use(await startPostgres({ config }))
  const standby = stack.use(await startPostgres({ standbyOf: primary, config }))
  const target = { port: primary.port }
  const proxy = stack.use(await startProxy(target))
  const url = primary.urlBy(proxy.port)
  const pool = stack.adopt(new Pool({ connectionString: url }), each => each.end())
  await migrate(pool)
  return {
    primary,
    standby,
    pool,
    newLocks: (): Locks => stack.adopt(createLocks(postgres(pool), { ttl }), locks => locks.close()),
    /** New connections reach this one. */
    lead(server: PostgresServer): void {
      target.port = server.port
    },
    /** The standby has all that the primary has written. */
    async caughtUp(): Promise<void> {
      const [row] = await primary.query<{ at: string }>('select pg_current_wal_lsn()::text as at')
      await until(
        'the standby has caught up',
        async () => {
          const [seen] = await standby.query<{ it: boolean }>(
            `select pg_last_wal_replay_lsn() >= '${row?.at}'::pg_lsn as it`,
          )
          return seen?.it === true
        },
        { limit },
      )
    },
    async promote(): Promise<void> {
      await standby.query('select pg_promote()')
      await until(
        'the standby is primary',
        async () => {
          const [row] = await standby.query<{ it: boolean }>('select pg_is_in_recovery() as it')
          return row?.it === false
        },
        { limit },
      )
    },
    /** When the lease ends, by the promoted standby. */
    async end(name: string): Promise<string | undefined> {
      const rows = await standby.query<{ end: string }>(
        `select expires_at::text as end from holdfast.lease where name = '${name}' and id is not null`,
      )
      return rows[0]?.end
    },
  }
}

type Pair = Awaited<ReturnType<typeof startPair>>

/** What happens to the primary before the standby is promoted. */
const ends: Readonly<Record<string, (pair: Pair) => Promise<unknown>>> = {
  'was killed': ({ primary }) => primary.kill(),
  'hangs with its connections open': ({ primary }) => primary.pause(),
  'became read-only with its connections open': ({ primary }) =>
    primary
      .query("alter system set default_transaction_read_only = 'on'")
      .then(() => primary.query('select pg_reload_conf()')),
}

test.each(Object.entries(ends))(
  'a failover of a primary that %s: leases are held on, tokens rise, waiters are served',
  async (_, fail) => {
    const pair = await startPair()
    const [one, two] = [pair.newLocks(), pair.newLocks()]
    const before = await one.acquire('free')
    await before.release()
    const lease = await one.acquire('held')
    const waiting = two.acquire('held')
    await until('it waits', async () => (await one.inspect('held')).waiters.length === 1, { limit })
    await pair.caughtUp()
    await fail(pair)
    await pair.promote()
    pair.lead(pair.standby)
    const end = await pair.end('held')
    await until('the lease is renewed by the new primary', async () => (await pair.end('held')) !== end, { limit })
    lease.assertHeld()
    const after = await until('it is granted', () => two.tryAcquire('free').catch(() => undefined), { limit })
    expect(after?.token).toBeGreaterThan(before.token)
    await after?.release()
    lease.assertHeld()
    await lease.release()
    const next = await waiting
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
    if (pair.primary.isRunning) pair.primary.resume()
  },
)

test.each(['hangs with its connections open', 'became read-only with its connections open'])(
  'waiters are notified by the new primary although the old one %s',
  async what => {
    const pair = await startPair()
    await followsTheAddress({
      waits: pair.newLocks().store,
      holds: pair.newLocks().store,
      async failOver() {
        await pair.caughtUp()
        await ends[what]?.(pair)
        await pair.promote()
        pair.lead(pair.standby)
      },
      async isSubscribed() {
        const listening = "select 1 from pg_stat_activity where query ilike 'listen %' and pid <> pg_backend_pid()"
        return (await pair.standby.query(listening)).length > 0
      },
    })
    pair.primary.resume()
  },
)

test('a grant that an asynchronous standby missed is lost: its holder is notified, and the next token is higher', async () => {
  const pair = await startPair()
  const [one, two] = [pair.newLocks(), pair.newLocks()]
  await pair.caughtUp()
  // As long as it is a standby it grants nothing, and is left for the primary.
  pair.lead(pair.standby)
  expect(await failureOf(one.tryAcquire('a'))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/is read-only, such as a standby/),
  })
  pair.lead(pair.primary)
  await pair.standby.kill()
  const lost = await one.acquire('a')
  await pair.primary.kill()
  await pair.standby.start()
  await pair.promote()
  pair.lead(pair.standby)
  const next = await two.acquire('a')
  expect(next.token).toBeGreaterThan(lost.token)
  await until('the first holder is told', () => lost.signal.aborted, { limit })
  next.assertHeld()
  await next.release()
})
