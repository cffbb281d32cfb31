import { setTimeout as sleep } from 'node:timers/promises'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { Stack } from '../../../test/harnesses/stack.ts'
import { failureOf } from '../../../test/support.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Holder } from '../mark.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { isAlone, isReader } from '../rule.ts'
import { permit, reader, stale, writer } from './support.ts'

// Holders of one name whose transactions run at the same time, at the isolation levels in which what a statement sees, and
// what it locks, differ.

/** A transaction of the caller. It has read the marks before it is checked. */
interface Old {
  check(holder: Holder): Promise<void>
  rollback(): Promise<unknown>
}

interface Trial {
  run(holder: Holder, work?: () => Promise<unknown>): Promise<unknown>
  touch(holder: Holder): Promise<void>
  begin(): Promise<Old>
  /** Resolves once this number of transactions waits for a lock. */
  waiting(count: number): Promise<unknown>
  slots(resource: string): Promise<readonly string[]>
  close(): Promise<unknown>
}

const trials: Readonly<Record<string, () => Promise<Trial>>> = {
  'PostgreSQL, read committed': () => openPostgres('read\\ committed'),
  'PostgreSQL, repeatable read': () => openPostgres('repeatable\\ read'),
  'MySQL, read committed': () => openMysql('READ-COMMITTED'),
  'MySQL, repeatable read': () => openMysql('REPEATABLE-READ'),
}

async function openPostgres(level: string): Promise<Trial> {
  const stack = new Stack()
  const server = stack.use(await startPostgres({ config: { fsync: 'off' } }))
  const options = `-c default_transaction_isolation=${level}`
  const pool = stack.adopt(new Pool({ connectionString: server.url(), options, max: 16 }), own => own.end())
  const fence = postgresFence(pool)
  await fence.install()
  return {
    run: (holder, work = async () => {}) => fence.transaction(holder, work),
    touch: holder => fence.touch(holder),
    async begin() {
      const client = await pool.connect()
      await client.query('begin')
      await client.query('select from holdfast.fence')
      return {
        check: holder => fence.check(holder, client),
        rollback: async () => {
          await client.query('rollback')
          client.release()
        },
      }
    },
    waiting: count =>
      until('they wait', async () => {
        const found = await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")
        return found.length === count
      }),
    slots: async resource => (await fence.marks.list(resource)).map(({ slot = 'name' }) => slot),
    close: () => stack.end(),
  }
}

async function openMysql(level: string): Promise<Trial> {
  const stack = new Stack()
  const server = stack.use(
    await startMariaDb({ config: { 'transaction-isolation': level, innodb_flush_log_at_trx_commit: 2 } }),
  )
  const pool = stack.adopt(createPool({ uri: server.url(), connectionLimit: 16 }), own => own.end())
  const fence = mysqlFence(pool)
  await fence.install()
  return {
    run: (holder, work = async () => {}) => fence.transaction(holder, work),
    touch: holder => fence.touch(holder),
    async begin() {
      const connection = await pool.getConnection()
      await connection.beginTransaction()
      await connection.query('select * from holdfast_fence')
      return {
        check: holder => fence.check(holder, connection),
        rollback: async () => {
          await connection.rollback()
          connection.release()
        },
      }
    },
    waiting: count => {
      const sql = "select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
      const isSo = async (): Promise<boolean> => (await pool.query<RowDataPacket[]>(sql))[0].length === count
      return until('they wait', isSo, { every: 150 }) // that table is 100 ms old if it is asked more often
    },
    slots: async resource => (await fence.marks.list(resource)).map(({ slot = 'name' }) => slot),
    close: () => stack.end(),
  }
}

describe.each(Object.keys(trials))('%s', level => {
  let trial: Trial
  beforeAll(async () => {
    trial = await (trials[level] as () => Promise<Trial>)()
  })
  afterAll(() => trial.close())

  /** A transaction that stays open until the test ends it. */
  async function open(holder: Holder): Promise<() => Promise<unknown>> {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const ended = trial.run(holder, () => {
      begun.resolve()
      return gate.promise
    })
    await Promise.race([begun.promise, ended])
    return () => {
      gate.resolve()
      return ended
    }
  }

  /** What a holder of before is told whose transaction may have to be repeated. It is never accepted. */
  async function isRefused(outcome: Promise<unknown>): Promise<boolean> {
    const { code } = LeaseError.from(await failureOf(outcome)) ?? {}
    return code === 'STALE_TOKEN' || code === 'STORE_UNAVAILABLE'
  }

  test.each([
    ['a reader', reader('', 6, 3)],
    ['a permit', permit('', 6, 5, 3)],
  ])('a stale writer that began while %s made the first mark of its slot is refused', async (kind, shown) => {
    for (const before of [[], [writer('', 4)], [reader('', 4, 2)], [permit('', 4, 5, 3), reader('', 4, 3)]]) {
      const name = `first ${kind} ${before.length} ${before[0]?.limit}`
      for (const each of before) await trial.touch({ ...each, name })
      const end = await open({ ...shown, name })
      const late = isRefused(trial.run(writer(name, 5), async () => expect.fail('it wrote')))
      await trial.waiting(1)
      await end()
      expect(await late).toBe(true)
      await expect(trial.run(writer(name, 5))).rejects.toEqual(stale(5n, 6n))
      await trial.run(writer(name, 7))
    }
  })

  test.each([
    ['a reader', reader('', 6, 3)],
    ['a permit', permit('', 6, 5, 3)],
  ])('a stale writer whose transaction began before %s showed its mark is refused', async (kind, shown) => {
    for (const before of [[], [writer('', 4)], [reader('', 4, 2)], [permit('', 4, 5, 3), reader('', 4, 3)]]) {
      const name = `old ${kind} ${before.length} ${before[0]?.limit}`
      for (const each of before) await trial.touch({ ...each, name })
      const old = await trial.begin()
      await trial.touch({ ...shown, name })
      expect(await isRefused(old.check(writer(name, 5)))).toBe(true)
      await old.rollback()
    }
  })

  test.each([
    ['reader', reader('', 5, 3)],
    ['permit', permit('', 5, 5, 3)],
  ])(
    'a stale %s is refused by a writer that is in its transaction, or came after its own began',
    async (kind, shown) => {
      for (const before of [[], [writer('', 4)], [{ ...shown, token: 4n }]]) {
        const name = `writer before ${kind} ${before.length} ${before[0]?.limit}`
        for (const each of before) await trial.touch({ ...each, name })
        const end = await open(writer(name, 6))
        const late = isRefused(trial.run({ ...shown, name }, async () => expect.fail('it read')))
        await trial.waiting(1)
        await end()
        expect(await late).toBe(true)
        const old = await trial.begin()
        await trial.touch(writer(name, 7))
        expect(await isRefused(old.check({ ...shown, name, token: 6n }))).toBe(true)
        await old.rollback()
      }
    },
  )

  test('a reader waits for a writer in its transaction, which is then refused', async () => {
    await trial.touch(writer('in flight', 5))
    const end = await open(writer('in flight', 5))
    const order: string[] = []
    const touched = trial.touch(reader('in flight', 6, 0)).then(() => order.push('reader'))
    await trial.waiting(1)
    order.push('end')
    await Promise.all([end(), touched])
    expect(order).toEqual(['end', 'reader'])
    await expect(trial.run(writer('in flight', 5))).rejects.toEqual(stale(5n, 6n))
  })

  test('permits and readers are in their transactions at the same time, and a writer waits for all of them', async () => {
    await trial.touch(reader('at once', 4, 0))
    for (const slot of [0, 1]) await trial.touch(permit('at once', 4, 5, slot))
    const ends = [
      await open(permit('at once', 4, 5, 0)),
      await open(permit('at once', 6, 5, 1)),
      await open(reader('at once', 5, 0)),
      await open(reader('at once', 4, 16)),
    ]
    const late = failureOf(trial.run(writer('at once', 5)))
    const next = trial.run(writer('at once', 7))
    await trial.waiting(2)
    for (const end of ends) await end()
    await next
    expect(await late).toMatchObject({ code: expect.stringMatching(/STALE_TOKEN|STORE_UNAVAILABLE/) })
  })

  test('a live writer gets its turn among overlapping readers that never pause', async () => {
    let isOver = false
    let reads = 0
    const failed: unknown[] = []
    const readers = Array.from({ length: 8 }, async (_, slot) => {
      for (let token = 10; !isOver && failed.length < 100; token += 1) {
        try {
          await trial.run(reader('crowded', token, slot), () => sleep(20))
          reads += 1
        } catch (error) {
          failed.push(error)
        }
      }
    })
    try {
      await until('readers overlap', () => reads > 40)
      await trial.run(writer('crowded', 2 ** 40))
    } finally {
      isOver = true
      await Promise.all(readers)
    }
    for (const error of failed) expect(error).toMatchObject({ code: expect.stringMatching(/STALE_TOKEN|UNAVAILABLE/) })
  })

  test('a crowd of writers, readers and permits: none is accepted after a newer one that excludes it', async () => {
    const holders = Array.from({ length: 120 }, (_, index) => holderOf(index))
    const begun: Holder[] = []
    const inside = new Set<Holder>()
    let refused = 0
    let repeated = 0
    let turn = 0
    const next = async (): Promise<void> => {
      turn += 1
      const shown = holders[Math.max(0, Math.floor(turn * 0.3) - Math.floor(Math.random() * 10))] as Holder
      const entered = { ...shown }
      try {
        await trial.run(shown, async () => {
          const newer = begun.filter(other => other.token > shown.token && excludes(shown, other))
          expect(newer).toEqual([])
          const beside = [...inside].filter(other => other.token !== shown.token && excludes(shown, other))
          expect(beside).toEqual([])
          inside.add(entered)
          begun.push(entered)
          await sleep(Math.random() * 4)
          inside.delete(entered) // before the commit: then others may begin
        })
      } catch (error) {
        const { code } = LeaseError.from(error) ?? {}
        if (code === 'STALE_TOKEN') refused += 1
        else if (code === 'STORE_UNAVAILABLE' && !begun.includes(entered)) repeated += 1
        else throw error
      }
    }
    const workers = Array.from({ length: 12 }, async () => {
      while (turn < 390) await next()
    })
    await Promise.all(workers)
    expect(begun.length + refused + repeated).toBe(turn)
    expect(begun.length).toBeGreaterThan(40)
    expect(refused).toBeGreaterThan(10)
  })
})

function holderOf(index: number): Holder {
  const token = index + 1
  const kind = index % 5
  if (kind === 0) return writer('crowd', token)
  if (kind < 3) return reader('crowd', token, (index * 7) % 40)
  return permit('crowd', token, 4, ...(kind === 3 ? [index % 4] : [index % 2, 2 + (index % 2)]))
}

function excludes(one: Holder, other: Holder): boolean {
  const [mark, others] = [one, other].map(({ limit, slots }) => ({ epoch: 0, token: 0n, limit, slots }))
  if (!mark || !others || isAlone(mark) || isAlone(others)) return true
  return !isReader(mark) && !isReader(others) && mark.slots?.some(slot => others.slots?.includes(slot)) === true
}
