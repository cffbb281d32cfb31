/** Mistakes in the rules of a name, which the differential test catches in a store that decides by them. */
import { expect, test, vi } from 'vitest'
import { brokenRules } from '../model/name/broken.ts'
import { VARIANTS } from '../model/name/variants.ts'
import { failureOf } from './differ.ts'
import { memoryRig } from './memory.ts'

/** What memory does not show: it has a floor for tokens, and keeps no positions. */
const HIDDEN = ['a token is given twice', 'a waiter that was passed never counts again, although its position is kept']

const RUNS = { numRuns: 3_000, seed: 1 }

test('memory answers as the rules of a name do, also after its clock was set back', async () => {
  expect(await failureOf(() => memoryRig(), RUNS)).toBeUndefined()
})

test.each(VARIANTS.filter(({ what }) => !HIDDEN.includes(what)))('$what', async ({ from, to }) => {
  const broken = await brokenRules(from, to)
  vi.resetModules()
  vi.doMock('../../src/stores/rules/name.ts', () => broken)
  try {
    const { memory } = await import('../../src/stores/memory/index.ts')
    expect(await failureOf(() => memoryRig(memory), RUNS)).toBeDefined()
  } finally {
    vi.doUnmock('../../src/stores/rules/name.ts')
  }
})
