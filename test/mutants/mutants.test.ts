import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { conformanceCases } from '../../lab/conformance/index.ts'
import { inTime } from '../../lab/conformance/timing.ts'
import { brokenRules } from '../model/name/broken.ts'
import { type Flaw, flaws } from './flaws.ts'
import { RULES } from './rules.ts'
import { harnessOf } from './wire.ts'

vi.setConfig({ maxConcurrency: 40 }) // nearly all tests mostly wait

const contract = readFileSync(join(import.meta.dirname, '../../src/contract/store.ts'), 'utf8')
const rules = [...contract.matchAll(/^ \* (R\d+)\. /gm)].map(([, rule]) => rule as string)
const ruleOf = (text: string): string | undefined => /^(R\d+): /.exec(text)?.[1]

test('S1: every rule of the contract has a case and a planted flaw, and every case names an existing rule', () => {
  const cases = conformanceCases(harnessOf()).map(({ name }) => ruleOf(name))
  expect(rules.length).toBeGreaterThan(10)
  expect(rules.filter(rule => !cases.includes(rule))).toEqual([])
  expect(rules.filter(rule => !Object.values(flaws).some(([begin]) => ruleOf(begin) === rule))).toEqual([])
  expect(cases.filter(rule => rule && !rules.includes(rule))).toEqual([])
})

for (const [flaw, [begin, says]] of Object.entries(flaws) as [Flaw, readonly [string, RegExp]][])
  test.concurrent(`S1: the case "${begin}" catches: ${flaw}`, { timeout: 60_000 }, async ({ expect }) => {
    const change = RULES[flaw]
    const rules = change && (await brokenRules(...change)).Name
    const named = conformanceCases(harnessOf(flaw, rules)).filter(({ name }) => name.startsWith(begin))
    expect(named).toHaveLength(1)
    // While this process hangs, a waiter may come too late to be harmed.
    await inTime(50, () => expect(named[0]?.run()).rejects.toThrow(says))
  })
