/**
 * The rules of one name: scenes, and random walks of a model with clients that crash, lose answers, send copies, renew and
 * shorten their leases, and ask early. A failing walk is repeated by its seed. Each planted mistake is caught.
 */
import { describe, expect, test } from 'vitest'
import { Name } from '../../../src/stores/rules/name.ts'
import { UNUSED } from '../../../src/stores/rules/state.ts'
import { isFull } from '../../tier.ts'
import { brokenRules } from './broken.ts'
import { type Demand, Model, type NameClass, type Plan } from './model.ts'
import { failures, Scene, scenes } from './scenes.ts'
import { search, walk } from './search.ts'
import { VARIANTS } from './variants.ts'

const WALKS = isFull ? 5_000 : 250
const LENGTH = 80
const TIMEOUT = 300_000

const lock: Demand = { limit: 1, units: 1, queue: true }
const one: Demand = { limit: 2, units: 1, queue: true }
const both: Demand = { limit: 2, units: 2, queue: true }
const two: Demand = { limit: 3, units: 2, queue: true }
const reader: Demand = { limit: 2 ** 31 - 1, units: 1, queue: true }
const tries: Demand = { limit: 1, units: 1, queue: false }
const all = [0, 1, 2, 3]

const plans: Readonly<Record<string, Plan>> = {
  locks: { demands: [lock, lock, lock, lock], crashes: all, early: all },
  'locks and a try': { demands: [lock, lock, tries, lock], crashes: [0, 1], early: all },
  'permits of one and two': { demands: [one, both, one, both], crashes: [1, 2], early: [3] },
  'readers and a writer': { demands: [reader, lock, reader, reader], crashes: [1], early: all },
  'limits that differ': { demands: [one, lock, reader, two], crashes: all },
  'copies and lost answers': { demands: [lock, one, lock], copies: true, losses: true, crashes: all },
  renewals: { demands: [lock, reader, lock], copies: true, renewals: true, shortens: true, crashes: [0] },
}

function walked(Class: NameClass, unused = UNUSED): string[] | undefined {
  for (const [what, plan] of Object.entries(plans))
    for (let seed = 0; seed < WALKS; seed += 1) {
      const path = walk(new Model(Class, unused, plan), seed, LENGTH)
      if (path) return [`${what}, seed ${seed}`, ...path]
    }
  return undefined
}

test.each(Object.entries(scenes))('%s', (_, play) => play(new Scene(Name, UNUSED)))

test('random walks of clients find no violation', { timeout: TIMEOUT }, () => {
  expect(walked(Name)).toBeUndefined()
})

test.each([
  ['two locks that crash', { demands: [lock, lock], crashes: [0, 1], copies: true }],
  ['three locks', { demands: [lock, lock, lock] }],
  ['a writer among readers', { demands: [reader, lock, reader] }],
] satisfies [string, Plan][])('all states of %s were seen, without a violation', { timeout: TIMEOUT }, (_, plan) => {
  expect(search(new Model(Name, UNUSED, plan), 1_000_000)).toMatchObject({ isComplete: true })
})

describe('each planted mistake is caught', () => {
  test.each(VARIANTS)('$what', { timeout: TIMEOUT }, async ({ from, to }) => {
    const broken = await brokenRules(from, to)
    expect(failures(broken.Name, UNUSED).length > 0 || walked(broken.Name) !== undefined).toBe(true)
  })
})
