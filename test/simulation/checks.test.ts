import { describe, expect, test } from 'vitest'
import { simulate, type Variant } from './simulate.ts'
import { variants } from './variants.ts'

/** The checks must find a mistake within this number of runs. */
const RUNS = 250

const flaws = Object.entries(variants)

describe('the simulation finds', () => {
  test.for(flaws)('%s', async ([, { variant, caught }]) => {
    expect(await firstViolation(variant, caught)).toMatch(caught)
  })
})

describe('processes and resources alone find', () => {
  const visible = flaws.filter(([, { isSeenByClients }]) => isSeenByClients)

  test.for(visible)('%s', async ([, { variant, caught }]) => {
    expect(await firstViolation({ ...variant, isSeenByClientsOnly: true }, caught)).toMatch(caught)
  })
})

/** A violation of the expected kind, or all other violations. */
async function firstViolation(variant: Variant, kind: RegExp): Promise<string> {
  const others: string[] = []
  for (let seed = 0; seed < RUNS; seed += 1) {
    const { violations } = await simulate(seed, variant)
    const violation = violations.find(each => kind.test(each))
    if (violation) return violation
    others.push(...violations)
  }
  return others[0] ?? `nothing in ${RUNS} runs`
}
