import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { judge } from '../lab/judge/checker.ts'
import { contest } from '../lab/judge/test/contest.ts'
import { newFolder } from '../lab/servers/folder.ts'
import { argumentsOf, commandOf, DURATION } from '../script/proof/programme.ts'
import type { Proof } from '../script/proof/proof.ts'
import { addProof, proofOf, proofs } from '../script/proof/results.ts'
import { filesOf, sourcesOf, whatRuns } from '../script/proof/sources.ts'
import { ENGINES } from '../src/engines.ts'
import { ROOT, scriptNode } from './script-node.ts'

const STORES = ENGINES.map(({ name }) => name).filter(name => name !== 'memory')

const about = {
  commit: 'abc',
  sources: 'old',
  machine: 'two cores',
  command: 'holdfast prove --lab redis --seed 1',
}
const passing = proofOf(judge(await contest(1)), { programme: 'usual', ...about })
const violating = proofOf(judge(await contest(1, { fence: false })), { programme: 'all', ...about })
const named = (engine: string, proof: Proof = passing): Proof => ({ ...proof, engine })

function pageIn(folder: string): string {
  return readFileSync(join(folder, 'README.md'), 'utf8')
}

const ADDER = `
  import { addProof } from ${JSON.stringify(join(ROOT, 'script/proof/results.ts'))}
  const [engine, folder, proof] = process.argv.slice(1)
  for (let i = 0; i < 20; i += 1) await addProof({ ...JSON.parse(proof), engine, programme: String(i) }, folder)`

test('several processes can add results to one folder at the same time', async () => {
  const folder = newFolder('proof')
  const addAll = (engine: string): Promise<unknown> =>
    scriptNode(['--input-type=module', '-e', ADDER, engine, folder, JSON.stringify(passing)], { folder })
  await Promise.all(['sqlite', 'redis', 'etcd'].map(addAll))
  expect(proofs(folder)).toHaveLength(60)
})

test('a result replaces only the last one of its engine and programme', async () => {
  const folder = newFolder('proof')
  for (const engine of ['sqlite', 'redis']) await addProof(named(engine), folder)
  await addProof(named('redis', violating), folder)
  await addProof({ ...named('redis'), commit: 'def' }, folder)
  expect(proofs(folder).map(({ engine, programme, commit }) => `${engine} ${programme} ${commit}`)).toEqual([
    ...['redis all abc', 'redis usual def', 'sqlite usual abc'],
  ])
})

test('the page has the violation, its explanation, and the command that repeats it', async () => {
  const folder = newFolder('proof')
  await addProof(named('redis'), folder)
  await addProof(named('redis', violating), folder)
  const page = pageIn(folder)
  expect(page).toMatch(/^\| redis \| usual \| passed \|/m)
  expect(page).toMatch(/^\| redis \| all \| \*\*violated\*\* \(\d+\): safety/m)
  expect(page).toContain(violating.rows[0]?.first)
  expect(page).toContain(violating.explanation.join('\n'))
  expect(page).toContain(`\n${about.command}\n`)
  expect(page).toMatch(/^\| sqlite \| usual \| not shown yet \|/m)
})

test('the page says of each result whether it is whole and of the same code', async () => {
  const folder = newFolder('proof')
  const ran = (programme: string, ms: number): string =>
    commandOf(argumentsOf('redis', programme, passing.run.seed, ms))
  const same = { ...named('redis'), sources: sourcesOf('redis') }
  await addProof({ ...same, command: ran('usual', 2 * DURATION) }, folder)
  await addProof({ ...same, programme: 'all', command: ran('all', DURATION - 1) }, folder)
  await addProof({ ...same, programme: 'sharing', command: ran('usual', DURATION) }, folder)
  await addProof(named('sqlite'), folder)
  expect(pageIn(folder)).toContain('**4 of 4 runs passed. 1 ran with the core and the store as they are now.**')
  expect(pageIn(folder)).toMatch(/^\| redis \| usual \|.*\| same as abc \|$/m)
  for (const programme of ['all', 'sharing'])
    expect(pageIn(folder)).toMatch(
      new RegExp(`^\\| redis \\| ${programme} \\|.*\\| shorter, or with other faults; same as abc \\|$`, 'm'),
    )
  expect(pageIn(folder)).toMatch(/^\| sqlite \|.* changed since abc \|$/m)
})

test('other words of a guarantee are the same code, and another number is not', () => {
  const guarantees = (minTtl: number, ...limits: string[]): string =>
    whatRuns(
      'guarantees.ts',
      `{\n  minTtl: ${minTtl},\n  limits: [\n${limits.map(limit => `    '${limit}',\n`).join('')}  ],\n}`,
    )
  expect(guarantees(200, 'A limit.', 'One more.')).toBe(guarantees(200, 'Another limit.'))
  expect(guarantees(300, 'A limit.')).not.toBe(guarantees(200, 'A limit.'))
  const order = (promised: string): string => whatRuns('guarantees.ts', `  order: '${promised}',\n`)
  expect(order('not promised')).not.toBe(order('first come, first served'))
})

test('stores of one engine have the same code, and others have not', () => {
  expect(sourcesOf('postgres-advisory')).toBe(sourcesOf('postgres'))
  expect(new Set(STORES.map(sourcesOf)).size).toBe(STORES.length)
})

test('what counts as code has sharing, the store of each URL, and every script', () => {
  for (const name of STORES)
    expect(filesOf(name)).toEqual(expect.arrayContaining(['src/sharing/permits.ts', `src/stores/${name}/open.ts`]))
  const scripts = globSync('src/stores/**/*.lua', { cwd: ROOT })
  expect(scripts.length).toBeGreaterThan(0)
  expect([...filesOf('redis'), ...filesOf('redlock')]).toEqual(expect.arrayContaining(scripts))
})

test.each([
  ['an unknown engine', ['--engine', 'sqlte'], /engine sqlte is unknown: expected sqlite, redis/],
  [
    'an unknown programme',
    ['--programme', 'some'],
    /--programme some is unknown: expected usual, all, sharing, differential/,
  ],
  ['a time without a unit', ['--for', '3'], /--for 3: a duration needs a unit/],
  ['a time that is too short', ['--for', '3s'], /--for 3s: expected 10s or more/],
  ['a seed that is not a number', ['--seed', 'x'], /--seed x: expected a whole number/],
])('%s is refused before a run starts', async (_, args, message) => {
  const { code, stderr } = await scriptNode([join(ROOT, 'script/proof/prove.ts'), ...args], { folder: ROOT })
  expect(code).toBe(64)
  expect(stderr).toMatch(message)
})
