import { afterAll, describe, test, vi } from 'vitest'
import { conformance, conformanceCases } from '../../lab/conformance/index.ts'
import { isFull } from '../tier.ts'
import { type StoreHarness, usualCases } from './harness.ts'

const timeout = 60_000

/** Registers the conformance suite of each harness. */
export function conform(...harnesses: readonly StoreHarness[]): void {
  vi.setConfig({ maxConcurrency: Math.min(...harnesses.map(({ parallel = 10 }) => parallel)) })
  for (const harness of harnesses) {
    const cases = isFull ? conformanceCases(harness) : usualCases(harness)
    const titles = new Set(cases.map(({ group, name }) => `${group}: ${name}`))
    // Vitest changes the options, so each test needs its own object.
    conformance(harness, {
      describe: (name, body) =>
        describe(name, () => {
          afterAll(() => harness.end())
          body()
        }),
      test: (name, body) => titles.has(name) && test(name, { timeout }, body),
      concurrent: (name, body) => titles.has(name) && test.concurrent(name, { timeout }, body),
    })
  }
}
