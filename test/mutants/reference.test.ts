import { describe, test, vi } from 'vitest'
import { conformance } from '../../lab/conformance/index.ts'
import { harnessOf } from './wire.ts'

vi.setConfig({ maxConcurrency: 20 })

// The cases that catch the mutants must pass for the reference.
conformance(harnessOf(), {
  describe,
  test: (name, body) => test(name, { timeout: 60_000 }, body),
  concurrent: (name, body) => test.concurrent(name, { timeout: 60_000 }, body),
})
