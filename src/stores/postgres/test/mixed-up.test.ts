import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import type { Claim, Store } from '../../../contract/store.ts'
import { advisory, migrate, postgres } from '../index.ts'
import { type Mistake, startShiftingPooler } from './shifting-pooler.ts'
import { claimOf, failureOf, hold, look, signal } from './support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
  const pool = new Pool({ connectionString: server.url() })
  await migrate(pool)
  await pool.end()
})
afterAll(() => server.stop())

/** Each request of a store; it answers what only the right answer says, for a claim that it holds. */
const requests = {
  acquire: async (store: Store, claim: Claim) => (await store.acquire(claim, signal)).held && claim.id,
  renew: (store: Store, claim: Claim) => store.renew(claim, signal),
  annotate: (store: Store, claim: Claim) => store.annotate(claim, signal),
  inspect: (store: Store, { name }: Claim) => look(store, { name }),
  release: (store: Store, claim: Claim) => store.release(claim, signal),
  break: (store: Store, { name }: Claim) => store.break(name, { by: 'test' }, signal),
}

const engines = { rows: postgres, advisory }

const both = Object.entries(clients).filter(([name]) => name !== 'pg Client') // which opens what a Pool opens

const cases = both.flatMap(([client, create]) =>
  Object.entries(engines).flatMap(([engine, storeOf]) =>
    Object.entries(requests)
      .filter(([request]) => engine === 'rows' || request !== 'break')
      .map(([request, ask]) => ({ client, create, engine, storeOf, request, ask })),
  ),
)

describe.each(['repeated', 'missing'] satisfies Mistake[])('S2: an answer that is %s', mistake => {
  test.each(cases)('is nobody else’s: $request, $client, $engine', async ({ create, storeOf, request, ask }) => {
    await using pooler = await startShiftingPooler(server)
    const { client, close } = create(pooler.url)
    await using store = storeOf(client)
    const [one, two] = [0, 1].map(() => claimOf(randomBytes(8).toString('hex'), { ttl: 10_000 })) as [Claim, Claim]
    // The same verb of another name first, so that what comes for the second has the shape of an answer to it.
    await hold(store, claimOf(randomBytes(8).toString('hex')))
    if (request !== 'acquire') await Promise.all([one, two].map(claim => hold(store, claim)))
    pooler.mistake = mistake
    const first = Promise.allSettled([ask(store, one)])
    if (mistake === 'repeated') await first
    await until('it was made', () => pooler.mistake === undefined)
    const [second] = await Promise.allSettled([ask(store, two)])
    // Acquiring an advisory lock takes two statements: the second one finds the mistake in the first.
    const wrong = [...(await first), second].filter(({ status }) => status === 'rejected')
    expect(wrong).toHaveLength(mistake === 'repeated' ? 1 : 2)
    for (const outcome of wrong) expect(outcome).toMatchObject({ reason: { code: 'OUTCOME_UNKNOWN' } })
    // The next request uses another connection.
    await until('it serves', () =>
      hold(store, claimOf(randomBytes(8).toString('hex'))).then(
        () => true,
        () => false,
      ),
    )
    await close()
  })
})

test.each(both)('S2: migrate over %s does not take another answer for its own', async (name, create) => {
  await using pooler = await startShiftingPooler(server)
  const { client, close } = create(pooler.url)
  for (const mistake of ['repeated', 'missing'] satisfies Mistake[]) {
    const table = `${name.replace(/\W/g, '_').toLowerCase()}_${mistake}`
    pooler.mistake = mistake
    await failureOf(migrate(client, { table }))
    pooler.mistake = undefined
    await migrate(client, { table })
    await using store = postgres(client, { table })
    await hold(store, claimOf('a'))
  }
  await close()
})
