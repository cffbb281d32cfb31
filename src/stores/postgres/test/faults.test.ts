import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { createLocks } from '../../../index.ts'
import { advisory } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt, transaction } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

const others = "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"

test('leases survive a restart of the server after a stop or a kill', async () => {
  const locks = createLocks(storeAt(server.url()), { ttl: 20_000 })
  const lease = await locks.acquire('restarted')
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    await server.kill(signal)
    await server.start()
    const remaining = await until('it is renewed', () => lease.extend().catch(() => undefined))
    expect(remaining).toBeGreaterThan(14_000) // a request takes at most 5 s
  }
  await lease.release()
  await locks.close()
})

test('leases survive, and waiters are woken, while all connections are repeatedly terminated', async () => {
  const [one, two] = [0, 1].map(() => createLocks(storeAt(server.url()), { ttl: 5_000 }))
  const lease = await one?.acquire('terminated')
  const waiting = two?.acquire('terminated')
  for (let turn = 0; turn < 20; turn += 1) {
    await server.query(`select pg_terminate_backend(pid) ${others}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  lease?.assertHeld()
  await until('it is renewed', () => lease?.extend().catch(() => undefined))
  await lease?.release()
  const next = await waiting
  expect(next?.token).toBeGreaterThan(lease?.token ?? 0n)
  await next?.release()
  for (const locks of [one, two]) await locks?.close()
})

test('a waiter is woken over a new connection after the subscription was terminated', async () => {
  const [holder, waiter] = [storeAt(server.url()), storeAt(server.url())]
  const [claim, next] = [claimOf('heard'), claimOf('heard', { queue: true })]
  await hold(holder, claim)
  await acquire(waiter, next)
  let wakes = 0
  await waiter.watch?.(next, () => (wakes += 1), signal)
  expect(await acquire(waiter, next)).toMatchObject({ retryAfter: expect.closeTo(1_667, -2) })
  const listening = `${others} and query like 'listen%'`
  await server.query(`select pg_terminate_backend(pid) ${listening}`)
  await until('it is told at once', () => wakes >= 1)
  expect(await acquire(waiter, next), 'it asks often while it hears nothing').toMatchObject({ held: false })
  await until('it is told that it hears again', () => wakes >= 2)
  await until('it hears again', async () => (await server.query(`select 1 ${listening}`)).length === 1)
  const before = wakes
  await holder.release(claim, signal)
  await until('it is woken', () => wakes > before)
  for (const store of [holder, waiter]) await store[Symbol.asyncDispose]()
})

test('a hot standby is reported as one, shows leases, and serves once it is promoted', async () => {
  await using primary = await startPostgres()
  await using before = storeAt(primary.url())
  const claim = claimOf('replicated', { ttl: 60_000 })
  const token = await hold(before, claim)
  await using standby = await startPostgres({ standbyOf: primary })
  await using store = storeAt(standby.url(), {})
  const verbs = [
    () => store.acquire(claimOf('replicated'), signal),
    () => store.renew(claim, signal),
    () => store.annotate(claim, signal),
    () => store.release(claim, signal),
    () => store.break(claim.name, { by: 'test' }, signal),
    () => store.break('nobody has it', { by: 'test' }, signal),
  ]
  for (const verb of verbs)
    expect(await failureOf(verb())).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/the PostgreSQL server is read-only, such as a standby: connect to the primary/),
    })
  await using locks = advisory(new Pool({ connectionString: standby.url() }))
  expect(await failureOf(hold(locks, claimOf('a lock')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/the PostgreSQL server is read-only, such as a standby: connect to the primary/),
  })
  const sessions = "select from pg_stat_activity where query ~ 'advisory|in_recovery' and pid <> pg_backend_pid()"
  await until('the next try goes elsewhere', async () => (await standby.query(sessions)).length === 0)
  expect(await look(store, { name: claim.name })).toMatchObject([{ token, state: 'held' }])
  await primary.kill()
  await standby.query('select pg_promote()')
  expect(await until('it serves', () => store.renew(claim, signal).catch(() => undefined))).toMatchObject({ token })
  await store.release(claim, signal)
  expect(await hold(store, claimOf(claim.name))).toBeGreaterThan(token)
  await hold(locks, claimOf('a lock'))
})

test('a statement_timeout of the administrator is reported, and the request is retried', async () => {
  await server.query('drop role if exists hurried; create role hurried login; grant postgres to hurried')
  await server.query("alter role hurried set statement_timeout = '300ms'")
  await using store = storeAt(server.url('hurried'))
  await until('it serves', () => hold(store, claimOf('before')).catch(() => undefined))
  const locked = await transaction(server, 'lock table holdfast.lease in access exclusive mode')
  expect(await failureOf(hold(store, claimOf('hurried')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    message: expect.stringMatching(/cancelled the request, and nothing was done: raise statement_timeout/),
  })
  const locks = createLocks(store)
  const waiting = locks.acquire('hurried')
  await new Promise(resolve => setTimeout(resolve, 500))
  await locked.end()
  await (await waiting).release()
})

test('a free name whose row is locked is asked for again before it is refused, without a holder', async () => {
  const locks = createLocks(storeAt(server.url()))
  await (await locks.acquire('locked')).release()
  const lock = (): ReturnType<typeof transaction> =>
    transaction(server, "select from holdfast.lease where name = 'locked' for update")
  const short = await lock()
  const held = locks.tryAcquire('locked')
  await new Promise(resolve => setTimeout(resolve, 100))
  await short.end()
  await (await held)?.release()
  expect(await held).toBeDefined()
  const long = await lock()
  expect(await failureOf(locks.acquire('locked', { wait: 1_500 }))).toMatchObject({
    code: 'BUSY',
    message: expect.stringContaining('holder unknown'),
  })
  await long.end()
  await locks.close()
})

test('no statement waits for a locked table for long, and its requests are retried', async () => {
  const store = storeAt(server.url())
  await look(store, { prefix: '' }) // which connects
  const locked = await transaction(server, 'lock table holdfast.lease in access exclusive mode')
  const claim = claimOf('rewritten')
  const verbs = [
    () => hold(store, claim),
    () => store.annotate(claim, signal),
    () => store.release(claim, signal),
    () => look(store, claim),
  ]
  for (const ask of verbs)
    expect(await failureOf(ask())).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(/another session keeps a table of leases locked.*lock timeout/),
    })
  expect(await server.query("select from pg_stat_activity where wait_event_type = 'Lock'")).toEqual([])
  const locks = createLocks(store)
  const waiting = locks.acquire('rewritten')
  await until('it asks', async () => (await server.query('select from pg_locks where not granted')).length > 0)
  await locked.end()
  await (await waiting).release()
  await locks.close()
})

test('a server without a free connection is reported as one, and a retry may succeed', async () => {
  await using small = await startPostgres({ config: { max_connections: 5, superuser_reserved_connections: 1 } })
  await small.query('create role app login; grant postgres to app')
  const taken: Awaited<ReturnType<typeof transaction>>[] = []
  for (let index = 0; index < 4; index += 1)
    taken.push(
      await until('a connection is free', () => transaction(small, 'select 1', [], 'app').catch(() => undefined)),
    )
  await using store = storeAt(small.url('app'))
  expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/PostgreSQL has no connection left/),
  })
  await taken[0]?.end()
  await until('a connection is free', () => hold(store, claimOf('a')).catch(() => undefined))
  for (const each of taken.slice(1)) await each.end()
})

test('another isolation level than read committed is refused, with what to do', async () => {
  await server.query('drop role if exists strict; create role strict login; grant postgres to strict')
  await server.query("alter role strict set default_transaction_isolation = 'serializable'")
  await hold(storeAt(server.url()), claimOf('makes the tables'))
  await using store = storeAt(server.url('strict'))
  expect(await failureOf(hold(store, claimOf('strict')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/leases need the isolation level read committed: alter role .*serializable/),
  })
})

test('a grant, a note and a renewal survive a crash with synchronous_commit off', async () => {
  await using forgetful = await startPostgres({ config: { synchronous_commit: 'off', wal_writer_delay: '10s' } })
  const store = storeAt(forgetful.url())
  const claim = claimOf('kept', { ttl: 60_000 })
  const token = await hold(store, claim)
  await forgetful.restart()
  expect(await until('it serves', () => look(store, { name: 'kept' }).catch(() => undefined))).toMatchObject([
    { token },
  ])
  await store.annotate({ ...claim, note: 'kept' }, signal)
  await forgetful.restart()
  expect(await until('it serves', () => look(store, { name: 'kept' }).catch(() => undefined))).toMatchObject([
    { note: 'kept' },
  ])
  await store.renew({ ...claim, ttl: 600_000 }, signal)
  await forgetful.restart()
  const [record] = await until('it serves', () => look(store, { name: 'kept' }).catch(() => undefined))
  expect(record?.remaining).toBeGreaterThan(500_000)
  await store[Symbol.asyncDispose]()
})

test('a claim that was delayed by a lock past its limit holds nothing', async () => {
  await using store = storeAt(server.url())
  await look(store, { prefix: '' }) // which connects
  await server.query("delete from holdfast.lease where name like 'late %'")
  const insert = 'insert into holdfast.lease (name, token, ttl, expires_at) values ($1, 0, 0, to_timestamp(0))'
  const lock = 'lock table holdfast.lease in access exclusive mode'
  for (const [text, ending] of [
    [insert, 'commit'],
    [insert, 'rollback'],
    [lock, 'rollback'],
  ] as const) {
    const claim = claimOf(`late ${text} ${ending}`, { ttl: 600 })
    if (text === lock) {
      const before = claimOf(claim.name)
      await hold(store, before)
      await store.release(before, signal)
    }
    const locked = await transaction(server, text, text === insert ? [claim.name] : [])
    const asked = acquire(store, claim)
    const outcome = asked.catch((error: unknown) => error)
    await new Promise(resolve => setTimeout(resolve, 400))
    await locked.end(ending)
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await look(store, { name: claim.name })).toEqual([])
  }
})

test('a request that was delayed while others were carried out shortens no lease', async () => {
  await using store = storeAt(server.url())
  const claim = claimOf('stood still', { ttl: 60_000 })
  await store.break(claim.name, { by: 'test' }, signal)
  await hold(store, claim)
  const limit = { slot_limit: 1, units: 1, round_trip: 0, until: Date.now() + 60_000 }
  for (const [verb, order] of [
    ['acquire', { ...claimOf('stood still'), ...limit }],
    ['acquire', { ...claim, ...limit }],
    ['renew', { ...claim, ...limit }],
  ] as const) {
    const others = await transaction(server, 'lock table holdfast.lease in access exclusive mode')
    const call = `select holdfast.lease_${verb}_2($1${verb === 'acquire' ? ", 'channel'" : ''})`
    const late = server.query(call, [JSON.stringify([{ i: 0, ...order }])])
    await oneWaits()
    await new Promise(resolve => setTimeout(resolve, 100)) // it is paused after it read the clock
    const renewed = `update holdfast.lease set expires_at = clock_timestamp() + interval '60 s' where name = 'stood still'`
    const [row] = (await others.query(`${renewed} returning expires_at::text`)) as { expires_at: string }[]
    await others.end()
    await late
    const [now] = await server.query<{ kept: boolean }>(
      `select expires_at >= '${row?.expires_at}'::timestamptz as kept from holdfast.lease where name = 'stood still'`,
    )
    expect(now, verb).toEqual({ kept: true })
  }
})

/** Until a request waits for a lock. */
async function oneWaits(): Promise<void> {
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock'`
  await until('it waits', async () => (await server.query(waiting)).length > 0)
}

test('a request that arrives after its limit does nothing', async () => {
  await using store = storeAt(server.url())
  const held = claimOf('in time')
  await hold(store, held)
  const limit = { slot_limit: 1, units: 1, round_trip: 0, until: Date.now() - 1 }
  for (const [verb, order] of [
    ['acquire', { ...claimOf('too late'), ...limit }],
    ['acquire', { ...claimOf('in time', { queue: true }), ...limit }],
    ['acquire', { ...held, ...limit }], // a copy of its own request, overtaken by the one that was granted
    ['renew', { ...held, ttl: 100, ...limit }],
  ] as const) {
    const values = [JSON.stringify([{ i: 0, ...order }]), ...(verb === 'acquire' ? ['channel'] : [])]
    const call = `select holdfast.lease_${verb}_2($1${verb === 'acquire' ? ', $2' : ''}) as answer`
    const [row] = await server.query<{ answer: string }>(call, values)
    expect(JSON.parse(row?.answer ?? '')).toMatchObject([expect.any(Number), [['late']]])
  }
  expect(await look(store, { name: 'too late' })).toEqual([])
  const [lease, ...waiters] = await look(store, { name: 'in time' })
  expect(waiters).toEqual([])
  expect(lease?.remaining).toBeGreaterThan(5_000)
})

test('a claim that is withdrawn while a lock delays it neither holds nor waits', async () => {
  const [one, two] = [storeAt(server.url()), storeAt(server.url())]
  for (const store of [one, two]) await look(store, { prefix: '' })
  await server.query("delete from holdfast.lease where name like 'withdrawn %'")
  const insert = 'insert into holdfast.lease (name, token, ttl, expires_at) values ($1, 0, 0, to_timestamp(0))'
  for (let turn = 0; turn < 10; turn += 1) {
    const claim = claimOf(`withdrawn ${turn}`, { queue: turn % 2 === 0 })
    const locked = await transaction(server, insert, [claim.name])
    const asked = acquire(one, claim)
    const withdrawn = two.release(claim, signal).catch(() => two.release(claim, signal))
    await new Promise(resolve => setTimeout(resolve, 20))
    await locked.end('rollback')
    await Promise.all([asked, withdrawn])
    expect(await look(one, { name: claim.name })).toEqual([])
  }
  for (const store of [one, two]) await store[Symbol.asyncDispose]()
})

test('a server whose commits wait for a dead standby gets few connections, and leases are lost in time', async () => {
  await using store = storeAt(server.url())
  const locks = createLocks(store, { ttl: 1_000 })
  const lease = await locks.acquire('waits')
  const set = async (names: string): Promise<unknown> => {
    await server.query(`alter system set synchronous_standby_names = '${names}'`)
    return server.query('select pg_reload_conf()')
  }
  await set('gone')
  const started = performance.now()
  while (performance.now() < started + 3_000) {
    const asked = [1, 2, 3].map(index => acquire(store, claimOf(`waits-${index}`, { ttl: 300 })).catch(() => undefined))
    await Promise.race([Promise.all(asked), new Promise(resolve => setTimeout(resolve, 100))])
  }
  expect((await server.query(`select pid ${others}`)).length).toBeLessThanOrEqual(8)
  expect(lease.signal.aborted).toBe(true)
  await set('')
  await until('it serves again', () => hold(store, claimOf('again')).catch(() => undefined))
  await locks.close()
})
