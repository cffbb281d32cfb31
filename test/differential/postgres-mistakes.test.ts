/**
 * Mistakes in the functions of PostgreSQL, which the differential test catches. Most take some seconds. A lost wake is seen only
 * until the store asks for its waiters.
 */
import type { Parameters } from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Names } from '../../src/stores/postgres/names.ts'
import { isFull } from '../tier.ts'
import type { Demand, History, Step } from './history.ts'

const SCHEMA = '../../src/stores/postgres/schema.ts'

const WAITER: Demand = { limit: 3, units: 1, queue: true, isBrief: false, roundTrip: 0, isWatched: true }

/** The third waiter is woken by the grant of the second, and by nothing before. */
const CHAIN: History = {
  demands: [{ ...WAITER, units: 3 }, WAITER, WAITER, WAITER],
  steps: [
    ...[0, 1, 2, 3].map((claim): Step => ({ verb: 'acquire', client: 0, claim })),
    { verb: 'break', client: 0 },
    { verb: 'wait', ms: 150 },
    { verb: 'follow' },
    { verb: 'settle' },
  ],
}

const HOLDER: Demand = { ...WAITER, queue: false, isWatched: false }

/** One of three holders remains, in the slot 2. Then a claim asks for one of two slots. */
const ABOVE: History = {
  demands: [HOLDER, HOLDER, HOLDER, { ...HOLDER, limit: 2 }],
  steps: [
    ...[0, 1, 2].map((claim): Step => ({ verb: 'acquire', client: 0, claim })),
    ...[0, 1].map((claim): Step => ({ verb: 'release', client: 0, claim })),
    { verb: 'acquire', client: 0, claim: 3 },
  ],
}

/** `history`: what shows it, where random histories do so rarely. */
const MISTAKES: readonly (readonly [what: string, from: string, to: string, history?: History])[] = [
  ['a slot is given twice', '_slots := array[_s.used];', '_slots := array[0];'],
  ['the limits of others do not count', 'least(_limit, _s.least_limit)', '_limit'],
  ['a slot in use is above the limit', '_s.highest < _limit and', '', ABOVE],
  ['a small claim overtakes a large one', 'least(_s.first_limit, _s.least_limit) - _s.used >= _s.first_units', 'true'],
  ['no grace period', '100 + f.round_trip as first_grace', '0 as first_grace'],
  ['the third passes two waiters', '(_s.ahead = 1 and', '(_s.ahead >= 1 and'],
  ['no tombstone', 'elsif _s.gone then', 'elsif false then'],
  ['a passed waiter counts', 'set passed = true where', 'set passed = false where'],
  ['no chain of wakes', '_changes := 2;', '', CHAIN],
  ['no wake after a withdrawal', 'if _before < 2 then', 'if _order.seq < 0 then'],
  ['no hint to the second', 'elsif _waiter.channel is not null and', 'elsif false and'],
  ['a later request changes limit and units', 'coalesce(_s.own_limit, _limit)', '_limit'],
  ['a token is given twice', '_token := greatest(_s.token + 1,', '_token := least(greatest(_s.token, 1),'],
  ['a copy shortens a lease', 'set expires_at = greatest(least(', 'set expires_at = least(greatest('],
]

for (const [what, from, to, history] of MISTAKES)
  test.skipIf(!isFull)(what, { timeout: 300_000 }, async () => {
    vi.resetModules()
    vi.doMock(SCHEMA, async (original: () => Promise<{ schemaSql: (names: Names) => string }>) => {
      const schema = await original()
      const schemaSql = (names: Names): string => {
        const text = schema.schemaSql(names)
        expect(text).toContain(from)
        return text.replaceAll(from, to)
      }
      return { ...schema, schemaSql }
    })
    const { postgresHarnesses } = await import('../harnesses/postgres.ts')
    const { failures, POSTGRES, WRONG } = await import('./differ.ts')
    const [harness] = postgresHarnesses()
    if (!harness) return expect.unreachable()
    try {
      const more: Parameters<[History]> = { endOnFailure: true, examples: history ? [[history]] : [] }
      expect(await failures(harness, { ...POSTGRES, latestWake: 1_400 }, more)).toMatch(WRONG)
    } finally {
      await harness.end()
      vi.doUnmock(SCHEMA)
    }
  })
