/**
 * Breadth-first searches of a model of the Redlock protocol: every order of events. member.ts has the rules of a node,
 * steps.ts those of a client. Messages are late, duplicated, lost and reordered: a node may execute a request at any time,
 * any number of times, or never. Replies arrive or are lost. Leases end at any time. Claims renew, restore, release,
 * withdraw and vote again. Tombstones are not modelled: a vote that one refuses may as well be lost. `break` and the end
 * of a quarantine, which depends on clocks, are not modelled either.
 *
 * The larger run: MODEL_SECONDS=300 npx vitest run test/model/redlock.test.ts
 * Then a search without an end runs for this time, or up to MODEL_STATES states (150 million by default, of about 60
 * bytes). MODEL_WALKS is the number of random walks.
 */
import { expect, test } from 'vitest'
import { isFull } from '../tier.ts'
import { EXCLUSION, LARGE, LIMITLESS, LIMITS, TEST_TIMEOUT, TOKENS, without } from './plans.ts'
import { search } from './search.ts'
import { walk } from './walk.ts'

const WALKS = Number(process.env.MODEL_WALKS ?? (isFull ? 500 : 200))

test('tokens are unique and rise in every state that two claims and three nodes can reach', {
  timeout: TEST_TIMEOUT,
}, () => {
  // Without a limit on numbers, duplicated messages or renewals: only the order of numbers is stored.
  const found = search(TOKENS, LIMITLESS)
  expect(found).toEqual({ states: 377_869, depth: 20, isComplete: true })
})

test.each([
  ['tokens when a claim votes again', { ...TOKENS, attempts: [2, 1] }],
  ['tokens when a node loses its memory', { ...TOKENS, forgetful: 1 }],
  ['tokens of three claims', { ...TOKENS, attempts: [1, 1, 1] }],
  ['exclusion', EXCLUSION],
  ['exclusion when a node loses its memory', { ...EXCLUSION, forgetful: 1 }],
] as const)('there is no violation of %s', { timeout: TEST_TIMEOUT }, (name, plan) => {
  const { violation, ...seen } = search(plan, LIMITS)
  if (process.env.MODEL_SECONDS) console.log(name, seen)
  expect(violation).toBeUndefined()
  expect(seen.isComplete || seen.depth >= 8).toBe(true)
})

test('random walks find no wrong token of three claims and five nodes', {
  timeout: TEST_TIMEOUT,
}, () => {
  let severalGrants = 0
  for (let seed = 0; seed < WALKS; seed += 1) {
    const { violation, grants } = walk(LARGE, seed, 300)
    expect(violation, `seed ${seed}`).toBeUndefined()
    if (grants > 1) severalGrants += 1
  }
  expect(severalGrants).toBeGreaterThan(WALKS / 10)
})

test.each(['writeBack', 'countedOnly', 'match', 'restoreBelow'] as const)(
  'such walks notice that %s is missing',
  rule => {
    const plan = { ...LARGE, rules: without(rule) }
    const seeds = Array.from({ length: 1000 }, (_, seed) => seed)
    expect(seeds.find(seed => walk(plan, seed, 300).violation)).toBeDefined()
  },
)
