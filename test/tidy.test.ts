import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ENTRIES } from '../script/entries.ts'
import { ENGINES } from '../src/engines.ts'
import { publicApi } from './public-api.ts'

const ROOT = join(import.meta.dirname, '..')
const LONGEST_FILE = 350
const HEADINGS = ['What it needs', 'What it promises', 'What can go wrong', 'Options', 'Permissions']

const STORE_PAGES = files('docs/stores/*.md').filter(path => !path.endsWith('README.md'))

const manifest = JSON.parse(read('package.json'))
/** Folders of src/stores that several engines share. */
const SHARED_FOLDERS = ['rules', 'url', 'wire', 'quorum', 'cas']

/** Type parameters that are called as a type of ours. */
const TYPE_PARAMETERS = ['Client', 'Connection', 'Key', 'Name', 'Request', 'Result']

let reported: string | undefined
const surface = (): string => (reported ??= publicApi(ROOT, ENTRIES))

// To accept a change: npm test -- test/tidy.test.ts --update
test('the public API is the one in test/public-api.txt', async () => {
  await expect(surface()).toMatchFileSnapshot('public-api.txt')
})

test('every type of ours that a public signature names can be imported', () => {
  const api = surface()
  const ours = new Set(
    files('src/**/*.ts').flatMap(path =>
      Array.from(read(path).matchAll(/^export (?:declare )?(?:interface|type|class) (\w+)/gm), ([, name]) => name),
    ),
  )
  const exported = new Set(Array.from(api.matchAll(/^ {2}(?:interface |type |class )?(\w+)/gm), ([, name]) => name))
  const named = new Set(Array.from(api.matchAll(/(?<![\w."'])[A-Z]\w+/g), ([name]) => name))
  expect([...named].filter(name => ours.has(name) && !exported.has(name) && !TYPE_PARAMETERS.includes(name))).toEqual(
    [],
  )
})

describe.each(ENGINES)('the store $name', ({ name, clients }) => {
  test('exports a function of its name', () => {
    const exported = name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    expect(read(`src/stores/${name}/index.ts`)).toMatch(
      new RegExp(`^export (async )?function ${exported}\\b|^export \\{.*\\b${exported}\\b`, 'm'),
    )
  })

  test('has a page', () => expect(STORE_PAGES).toContain(`docs/stores/${name}.md`))

  test('has clients that are optional peer dependencies of the package', () => {
    expect(Object.keys(manifest.peerDependencies)).toEqual(
      expect.arrayContaining(clients.flatMap(each => each.split(' '))),
    )
  })
})

test.each(STORE_PAGES)('%s has the standard headings, in order, and no others', page => {
  const headings = read(page).matchAll(/^## (.*)$/gm)
  expect(Array.from(headings, ([, heading]) => heading)).toEqual(HEADINGS)
})

test('each folder of src/stores is an engine of the table, or shared by several', () => {
  const folders = readdirSync(join(ROOT, 'src/stores')).filter(name => name !== 'README.md')
  expect(folders.sort()).toEqual([...ENGINES.map(({ name }) => name), ...SHARED_FOLDERS].sort())
})

test('only the command line prints', () => {
  expect(
    files('src/**/*.ts').filter(path => !/^src.cli.|\.test\.ts$|.test\//.test(path) && /\bconsole\b/.test(read(path))),
  ).toEqual([])
})

// Clones of a snapshot of memory share what the generators of Node draw.
test('ids that decide are drawn by contract/random-id.ts', () => {
  const sources = files('src/**/*.ts').filter(path => !/^src.cli.|\.test\.ts$|.test\/|random-id/.test(path))
  expect(sources.filter(path => /random(UUID|Bytes|FillSync)|getRandomValues/.test(read(path)))).toEqual([])
})

test(`no source file has more than ${LONGEST_FILE} lines`, () => {
  const sources = files('{src,lab,drop-ins,test,examples,script,site}/**/*').filter(path =>
    /(\.(ts|c|sh)|^script\/\w+)$/.test(path),
  )
  expect(sources.filter(path => read(path).trimEnd().split('\n').length > LONGEST_FILE)).toEqual([])
})

test('the package has no dependencies, and all peer dependencies are optional', () => {
  expect(manifest.dependencies).toBeUndefined()
  const { peerDependencies, peerDependenciesMeta } = manifest
  for (const peer of Object.keys(peerDependencies)) expect(peerDependenciesMeta[peer]).toEqual({ optional: true })
})

test('lock files have no registry URLs', () => {
  const locks = files('**/package-lock.json')
  expect(locks).toContain('package-lock.json')
  expect(locks.filter(path => /"resolved": "(?!lab"|drop-ins\/\w|")/.test(read(path)))).toEqual([])
})

/** Files of the checkout, as paths from its root. */
function files(pattern: string): string[] {
  const options = { cwd: ROOT, withFileTypes: true, exclude: isForeign } as const
  return globSync(pattern, options)
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .sort()
}

function isForeign({ name }: { name: string }): boolean {
  return name === 'node_modules' || name === 'dist' || name === '.tools'
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
