/**
 * Mistakes in the script of Redis, which the differential test and the fuzz run catch. Each takes up to a minute. No single
 * one lets a token fall: the name has its last one, and the server the highest of all.
 */
import { createHash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { script } from '../../src/stores/redis/verbs.ts'
import type { StoreHarness } from '../harnesses/harness.ts'
import { isFull } from '../tier.ts'

const VERBS = '../../src/stores/redis/verbs.ts'

const MISTAKES: readonly (readonly [what: string, from: string, to: string])[] = [
  ['no grace period', '(name.since or name.ends) + TURN + roundTrip', 'name.since or name.ends'],
  ['a small claim overtakes a large one', 'if not limit or not fits(name, limit, units)', 'if not limit'],
  ['the largest limit counts', 'least = math.min(least, each)', 'least = math.max(least % math.huge, each)'],
  ['a slot is given twice', 'digit = digit + 2 ^ bit', 'digit = digit'],
  ['no wake after a withdrawal', 'if before[1] ~= after[1] then', 'if false then'],
  ['no chain of wakes', 'change(key, name) -- so that', '-- so that'],
  ['no hint to the second', 'if second then hint', 'if false then hint'],
  ['no tombstone', "if call('GET', key .. ':gone:' .. id) then return 'x' end", ''],
  ['a copy shortens a lease', 'if ends - now <= tonumber(ttl) then', 'if true then'],
  ['a passed waiter counts', "if passed then call('ZREM', key .. ':line', passed) end", ''],
  ['a later request changes limit and units', 'if arrival then limit, units = before, wanted end', ''],
  ['the slots of a member stay in use', 'if limit then count(name, limit, -1) end', ''],
]

/** What the fuzz run finds although the network fails and servers pause meanwhile. */
const WITH_FAULTS: typeof MISTAKES = [
  ['a renewal lasts half as long', 'name.ends = now + ttl', 'name.ends = now + ttl / 2'],
  ['a slot is given twice', 'digit = digit + 2 ^ bit', 'digit = digit'],
]

test.skipIf(!isFull).each(MISTAKES)('%s', { timeout: 300_000 }, async (_, from, to) => {
  await withMistake(from, to, async (harness, { failures, WRONG }) =>
    expect(await failures(harness, { keepsWatched: true }, { endOnFailure: true })).toMatch(WRONG),
  )
})

test.skipIf(!isFull).each(WITH_FAULTS)('while faults happen: %s', { timeout: 300_000 }, async (_, from, to) => {
  await withMistake(from, to, async (harness, { fuzzed }) =>
    expect((await fuzzed(harness, 120_000)).wrong.size).toBeGreaterThan(0),
  )
})

type Differ = typeof import('./differ.ts')

async function withMistake(
  from: string,
  to: string,
  run: (harness: StoreHarness, differ: Differ) => Promise<void>,
): Promise<void> {
  expect(script.source).toContain(from)
  const source = script.source.replaceAll(from, to)
  vi.resetModules()
  vi.doMock(VERBS, () => ({ script: { ...script, source, sha: createHash('sha1').update(source).digest('hex') } }))
  const { redisHarness } = await import('../harnesses/redis.ts')
  const harness = redisHarness()
  try {
    await run(harness, await import('./differ.ts'))
  } finally {
    await harness.end()
    vi.doUnmock(VERBS)
  }
}
