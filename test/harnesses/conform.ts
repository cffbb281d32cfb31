import { afterAll, describe, test, vi } from 'vitest'
import { conformance } from '../../lab/conformance/index.ts'
import { isFull } from '../tier.ts'
import type { StoreHarness } from './harness.ts'

const timeout = 60_000

/** Registers the conformance suite of each harness. */
export function conform(...harnesses: readonly StoreHarness[]): void {
  // Most cases mostly wait.
  vi.setConfig({ maxConcurrency: 10 })
  for (const harness of harnesses) {
    const isWhole = isFull || !harness.repeats
    conformance(harness, {
      describe: (name, body) =>
        describe(name, () => {
          afterAll(() => harness.end())
          body()
        }),
      test: isWhole ? (name, body) => test(name, { timeout }, body) : () => {}, // Vitest changes the options, so each test needs its own object
      concurrent: (name, body) => test.concurrent(name, { timeout }, body),
    })
  }
}
