import { expect, test } from 'vitest'
import type { Variant } from './server.ts'
import { simulate } from './simulate.ts'

/** Enough for each mistake to show. */
const RUNS = 80

/** The first violation of runs that have all faults. */
async function firstViolation(variant: Variant): Promise<string | undefined> {
  for (let seed = 0; seed < RUNS; seed += 1) {
    const { violations } = await simulate(seed, variant)
    if (violations[0] !== undefined) return violations[0]
  }
  return undefined
}

test('a slot that is released twice has two holders', async () => {
  expect(await firstViolation({ releasesTwice: true })).toMatch(/a slot is held twice|permits are held|a reader beside/)
})

test('a server that ignores limits grants a reader beside a writer, or too many permits', async () => {
  expect(await firstViolation({ ignoresLimits: true })).toMatch(/permits are held|a reader beside/)
})
