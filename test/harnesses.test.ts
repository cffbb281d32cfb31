import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conformanceCases, excludedCases } from '../lab/conformance/index.ts'
import { ENGINES } from '../src/engines.ts'
import { type StoreHarness, usualCases } from './harnesses/harness.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Source = () => StoreHarness | StoreHarness[]

/** What test/harnesses exports to make harnesses of nothing. */
const modules = globSync('test/harnesses/*.ts', { cwd: root })
  .toSorted()
  .map(path => import(join(root, path)))
const sources = (await Promise.all(modules)).flatMap((module): Source[] =>
  Object.values<unknown>(module).filter(
    (value): value is Source => typeof value === 'function' && /Harness(es)?$/.test(value.name) && value.length === 0,
  ),
)
const all = sources.flatMap(source => source())

test('every store has a harness', () => {
  expect(ENGINES.filter(({ name }) => !all.some(({ store }) => store === name))).toEqual([])
})

test('one test file runs each harness', () => {
  const files = globSync('src/stores/**/*.test.ts', { cwd: root })
  const run = files.flatMap(file =>
    Array.from(read(file).matchAll(/^conform\(\W*(\w+)\(\)\)$/gm), ([, name]) => String(name)),
  )
  expect(new Set(run)).toEqual(new Set(sources.map(({ name }) => name)))
  expect(run).toHaveLength(sources.length)
})

test('a harness repeats only a harness that runs all of its cases', () => {
  const whole = all.filter(({ repeats }) => !repeats).map(({ name }) => name)
  for (const { repeats } of all) if (repeats) expect(whole).toContain(repeats)
})

// To accept a change: npm test -- test/harnesses.test.ts --update
test('test/excluded-cases.txt lists the cases that a harness excludes, and why', async () => {
  const report = all.map(harness => {
    const { name, repeats } = harness
    const rest = conformanceCases(harness).length - usualCases(harness).length
    const excluded = excludedCases(harness)
    return [
      `${name}: ${excluded.length} excluded${repeats ? `; ${rest} only with --full, because it repeats ${repeats}` : ''}`,
      ...excluded.map(({ group, name, need, why }) => `  ${group}: ${name} (${need}: ${why})`),
    ]
  })
  await expect(`${report.flat().join('\n')}\n`).toMatchFileSnapshot('excluded-cases.txt')
})
