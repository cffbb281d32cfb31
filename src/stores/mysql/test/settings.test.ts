import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { readOnlyOf } from '../sql.ts'
import { acquire, claimOf, failureOf, hold, signal, storeAt } from './support.ts'

let server: MariaDbServer

beforeAll(async () => {
  server = await startMariaDb()
  await using store = storeAt(server.url())
  await hold(store, claimOf('first'))
})
afterAll(() => server.stop())

test('settings of the server that would hide rows or refuse statements do not matter', async () => {
  const settings = ['sql_select_limit', 'max_join_size', 'tx_read_only']
  for (const setting of settings) await server.query(`set global ${setting} = 1`)
  try {
    await using store = storeAt(server.url())
    const [holder, waiter, gone] = [claimOf('hidden'), claimOf('hidden', { queue: true }), claimOf('hidden')]
    const token = await hold(store, holder)
    expect(await acquire(store, waiter)).toMatchObject({ held: false, ahead: 0, holder: { token } })
    expect(await store.renew(holder, signal)).toMatchObject({ token })
    expect(await store.release(gone, signal)).toBe('gone')
    expect(await store.release(holder, signal)).toBe('released')
    expect(await acquire(store, gone)).toMatchObject({ held: false })
    await hold(store, waiter)
  } finally {
    for (const setting of settings) await server.query(`set global ${setting} = default`)
  }
})

test('tables of another engine than InnoDB are refused, also if the server chose it', async () => {
  await using chosen = await startMariaDb({ config: { enforce_storage_engine: 'Aria', sql_mode: '' } })
  for (const create of [true, false]) {
    await using store = storeAt(chosen.url(), { create })
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/InnoDB, not Aria/),
    })
  }
})

test('a replica is refused, and so is a server that forgets commits in a crash', async () => {
  onTestFinished(async () => {
    await server.query('set global read_only = 0, global innodb_flush_log_at_trx_commit = 1')
  })
  await server.query("create user if not exists reader@'%' identified by 'x'")
  await server.query("grant all on app.* to reader@'%'")
  await using store = storeAt(server.url('reader', 'x'))
  const claim = claimOf('replicated')
  await hold(store, claim)
  await server.query('set global read_only = 1')
  for (const ask of [() => acquire(store, claimOf('replicated')), () => store.renew(claim, signal)])
    expect(await failureOf(ask())).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/read-only, such as a replica/),
    })
  const settings = ['0', '1', "'OFF'", "'ON'", "'NO_LOCK'", "'NO_LOCK_NO_ADMIN'"].map(setting => readOnlyOf(setting))
  const [told] = await server.query(`select ${settings.map((sql, i) => `${sql} as s${i}`).join(', ')}`)
  expect(Object.values(told ?? {}).map(Number)).toEqual([0, 1, 0, 1, 1, 1])
  await server.query('set global read_only = 0')
  await hold(store, claimOf('after it'))
  await server.query('set global innodb_flush_log_at_trx_commit = 0')
  await using careless = storeAt(server.url())
  expect(await failureOf(hold(careless, claimOf('careless')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/innodb_flush_log_at_trx_commit = 1/),
  })
})

test('a server that cannot receive a full batch is refused, and the smallest that is not receives the largest', async () => {
  await using small = await startMariaDb({ config: { max_allowed_packet: 1_048_576 - 1_024 } })
  await using refused = storeAt(small.url())
  expect(await failureOf(hold(refused, claimOf('a')))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/max_allowed_packet = 1048576/),
  })
  await small.query('set global max_allowed_packet = 1048576')
  await using store = storeAt(small.url())
  const claims = Array.from({ length: 512 }, (_, index) =>
    claimOf(String(index).padEnd(255, 'x'), { note: 'n'.repeat(255), owner: 'o'.repeat(255), queue: true }),
  )
  const holders = await Promise.all(claims.map(claim => acquire(store, claim)))
  expect(holders.every(({ held }) => held)).toBe(true)
  const waiters = await Promise.all(claims.map(({ id, ...claim }) => acquire(store, { ...claim, id: `${id}0` })))
  expect(waiters.some(({ held }) => held)).toBe(false)
  expect(await Promise.all(claims.map(claim => store.renew(claim, signal)))).toHaveLength(512)
  // A name with many holders, beside another one.
  const permits = Array.from({ length: 700 }, (_, index) =>
    claimOf(index < 600 ? 'permits' : 'others', { note: 'n'.repeat(255), owner: 'o'.repeat(255), limit: 600 }),
  )
  const granted = await Promise.all(permits.map(claim => acquire(store, claim)))
  expect(granted.every(({ held }) => held)).toBe(true)
  expect(await Promise.all(permits.map(claim => store.renew(claim, signal)))).not.toContain(undefined)
  // Thousands of waiters that died are deleted in several steps, also of several names at once.
  const names = ['crowded', 'crowded, too'].map(name => name.padEnd(255, 'x'))
  for (const name of names)
    await small.query(
      `insert into holdfast_lease_line select '${name}', md5(seq), '', '', seq, 1, 0, 9000, 1, 1, 100, 0 from seq_1_to_2500`,
    )
  for (let round = 0; round < 5; round++) {
    const crowded = names.map(name => claimOf(name))
    await Promise.all(crowded.map(claim => hold(store, claim)))
    for (const claim of crowded) expect(await store.release(claim, signal)).toBe('released')
  }
  expect(await small.query(`select 1 from holdfast_lease_line where name like 'crowded%'`)).toEqual([])
})
