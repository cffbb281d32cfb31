import { expect, test } from 'vitest'
import type { Plan } from './plan.ts'
import { EXCLUSION, LIMITLESS, TEST_TIMEOUT, TOKENS, without } from './plans.ts'
import type { Rules } from './rules.ts'
import { search } from './search.ts'
import type { Step } from './steps.ts'

const SMALL: Plan = { ...TOKENS, renewals: 0, numbers: 3 }

/** The first claim is granted by nodes 1 and 2. */
const GRANTED: Step[] = [
  { kind: 'begin', attempt: 0 },
  { kind: 'vote', attempt: 0, member: 0, by: 1, isHeard: true },
  { kind: 'vote', attempt: 0, member: 1, by: 1, isHeard: true },
  { kind: 'decide', attempt: 0 },
]

const variants: [string, keyof Rules, Plan][] = [
  ['the greatest token of a majority is handed out without being written back', 'writeBack', SMALL],
  ['a COMMIT is acknowledged by nodes whose votes were not counted', 'countedOnly', SMALL],
  ['a COMMIT is carried out on another lease of the claim than the one voted for', 'match', SMALL],
  ['a node that has lost its memory votes', 'quarantine', { ...SMALL, forgetful: 1 }],
  [
    'a lease is set again where the counter has passed its token',
    'restoreBelow',
    { ...TOKENS, attempts: [1, 1, 1], numbers: 3, given: GRANTED },
  ],
  ['a withdrawal frees the lease of a later attempt', 'yieldAttempt', { ...EXCLUSION, renewals: 0 }],
  ['a renewed lease keeps the number of an earlier attempt', 'renewAttempt', EXCLUSION],
  ['a lease that is set again has no number of an attempt', 'restoreAttempt', EXCLUSION],
  ['a release leaves the counter, and a late renewal sets the lease again', 'releaseRaises', EXCLUSION],
]

// Each story is one of the shortest. To accept other ones: npm test -- test/model/variants.test.ts --update
test.each(variants)('it is noticed when %s', { timeout: TEST_TIMEOUT }, async (_, rule, plan) => {
  const { violation } = search({ ...plan, rules: without(rule) }, LIMITLESS)
  const steps = violation?.map((line, index) => `${index + 1}. ${line}`).join('\n')
  await expect(`${steps}\n`).toMatchFileSnapshot(`stories/${rule}.txt`)
})

test.each(['writeBack', 'match'] as const)('it is noticed by the order of numbers alone when %s is missing', rule => {
  expect(search({ ...TOKENS, rules: without(rule) }, LIMITLESS).violation).toEqual([expect.stringContaining('token')])
})
