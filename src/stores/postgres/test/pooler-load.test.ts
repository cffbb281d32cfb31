import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { poolerGenerations, startPgBouncer } from '../../../../lab/servers/pgbouncer.ts'
import { startPostgres } from '../../../../lab/servers/postgres.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import type { Claim } from '../../../contract/store.ts'
import { migrate, postgres } from '../index.ts'
import { acquire, claimOf, signal } from './support.ts'

// A Client opens what a Pool opens.
const CASES = Object.entries(clients)
  .filter(([name]) => name !== 'pg Client')
  .flatMap(([name, create]) => poolerGenerations().map(generation => ({ name, create, generation })))

/** Rounds of each process, and names in each. With 150 names and these notes a message has about 30 KB. */
const [ROUNDS, NAMES, NOTE] = [40, 150, 'n'.repeat(200)]

const TITLE = 'S2: six processes over $name, through one pooler ($generation), get their own answers'

// pgbouncer 1.18 mixes up overlapping requests if one is longer than 20 KB.
test.each(CASES)(TITLE, async ({ create, generation }) => {
  await using server = await startPostgres({ config: { fsync: 'off' } })
  await using pooler = await startPgBouncer(server, { size: 2, generation })
  const pool = new Pool({ connectionString: server.url() })
  await migrate(pool)
  await pool.end()
  const failures: string[] = []
  const tokens = new Map<string, Set<bigint>>()
  const fail = (error: unknown): void => void failures.push(`${(error as Error).message}`)
  const pair = async (store: ReturnType<typeof postgres>, claim: Claim): Promise<void> => {
    try {
      const grant = await acquire(store, claim)
      const seen = tokens.get(claim.name) ?? new Set()
      if (!grant.held || seen.has(grant.token))
        throw new Error(`${claim.name} was answered ${JSON.stringify(grant, String)}`)
      tokens.set(claim.name, seen.add(grant.token))
      await store.release(claim, signal)
    } catch (error) {
      fail(error)
    }
  }
  await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const { client, close } = create(pooler.url)
      {
        await using store = postgres(client, { direct: false })
        for (let round = 0; round < ROUNDS; round += 1)
          await Promise.all(
            Array.from({ length: NAMES }, (_, name) =>
              pair(store, claimOf(`${index}/name-of-some-length/${name}`, { note: NOTE, ttl: 15_000 })),
            ),
          )
      }
      await close()
    }),
  )
  expect(failures).toEqual([])
  expect(server.output).not.toMatch(/invalid frontend message|invalid byte sequence/)
})
