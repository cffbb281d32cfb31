import { expect, test } from 'vitest'
import { climates } from './faults.ts'
import { simulate } from './simulate.ts'
import { variants } from './variants.ts'

/** The checks must find a mistake within this number of runs. */
const RUNS = 100

test.for(Object.entries(variants))(
  'the simulation notices %s',
  { timeout: 120_000 },
  async ([, { variant, caught, climate }]) => {
    const others: string[] = []
    for (let run = 0; run < RUNS; run += 1) {
      const { violations } = await simulate(climates.indexOf(climate) + run * climates.length, variant)
      if (violations.some(each => caught.test(each))) return
      others.push(...violations)
    }
    expect(others).toContainEqual(expect.stringMatching(caught))
  },
)
