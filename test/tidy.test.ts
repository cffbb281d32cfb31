import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API, type Checker, type Program, SymbolFlags } from 'typescript/unstable/sync'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENTRIES } from '../script/entries.ts'
import { ENGINES } from '../src/engines.ts'

const ROOT = join(import.meta.dirname, '..')
const LONGEST_FILE = 350
const HEADINGS = ['What it needs', 'What it promises', 'What can go wrong', 'Options', 'Permissions']

const manifest = JSON.parse(read('package.json'))
/** Folders of src/stores that several engines share. */
const PARTS = ['shared', 'quorum']

describe('the public surface', () => {
  let api: API
  let program: Program
  let checker: Checker

  beforeAll(() => {
    api = new API({ cwd: ROOT })
    const [project] = api.updateSnapshot({ openProjects: [join(ROOT, 'tsconfig.json')] }).getProjects()
    if (!project) throw new Error('tsconfig.json was not opened')
    ;({ program, checker } = project)
  })
  afterAll(() => api.close())

  // To accept a change: npm test -- test/tidy.test.ts --update
  test('is the one that test/public-api.txt reports', async () => {
    const report = Object.entries(ENTRIES).map(([name, path]) => `${subpath(name)}\n${surface(path).join('\n')}\n`)
    await expect(report.join('\n')).toMatchFileSnapshot('public-api.txt')
  })

  function surface(path: string): string[] {
    const file = program.getSourceFile(join(ROOT, path))
    const module = file && checker.getSymbolAtLocation(file)
    if (!module) throw new Error(`the entry point ${path} is missing or exports nothing`)
    return checker
      .getExportsOfModule(module)
      .map(exported => {
        const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
        const type = checker.getTypeOfSymbol(symbol)
        return `  ${exported.name}: ${kindOf(symbol.flags, () => (type ? checker.typeToString(type) : '?'))}`
      })
      .sort()
  }
})

function kindOf(flags: SymbolFlags, type: () => string): string {
  if (flags & SymbolFlags.Class) return 'class'
  if (flags & SymbolFlags.Interface) return 'interface'
  if (flags & SymbolFlags.TypeAlias) return 'type'
  return type()
}

describe.each(ENGINES)('the store $name', ({ name, clients }) => {
  test('exports a function of its name', () => {
    expect(read(`src/stores/${name}/index.ts`)).toMatch(
      new RegExp(`^export (async )?function ${name}\\b|^export \\{.*\\b${name}\\b`, 'm'),
    )
  })

  test('has a page with the standard headings', () => {
    const headings = read(`docs/stores/${name}.md`).matchAll(/^##+ (.*)$/gm)
    expect(Array.from(headings, ([, heading]) => heading)).toEqual(expect.arrayContaining(HEADINGS))
  })

  test('needs clients that are optional peers of the package', () => {
    expect(Object.keys(manifest.peerDependencies)).toEqual(expect.arrayContaining([...clients]))
  })
})

test('each folder of src/stores is an engine of the table, or a part of several', () => {
  const folders = readdirSync(join(ROOT, 'src/stores'))
  expect(folders.sort()).toEqual([...ENGINES.map(({ name }) => name), ...PARTS].sort())
})

test('nothing is printed outside of the command line', () => {
  expect(
    files('src/**/*.ts').filter(path => !/^src.cli.|\.test\.ts$|.test\//.test(path) && /\bconsole\b/.test(read(path))),
  ).toEqual([])
})

test(`no source file has more than ${LONGEST_FILE} lines`, () => {
  const sources = files('{src,lab,test,examples,script}/**/*').filter(path => /(\.(ts|c|sh)|^script\/\w+)$/.test(path))
  expect(sources.filter(path => read(path).trimEnd().split('\n').length > LONGEST_FILE)).toEqual([])
})

test('the package brings no dependency, and requires none', () => {
  expect(manifest.dependencies).toBeUndefined()
  const { peerDependencies, peerDependenciesMeta } = manifest
  for (const peer of Object.keys(peerDependencies)) expect(peerDependenciesMeta[peer]).toEqual({ optional: true })
})

test('lock files say what is installed and not from where', () => {
  const locks = files('**/package-lock.json')
  expect(locks).toContain('package-lock.json')
  expect(locks.filter(path => read(path).includes('"resolved"'))).toEqual([])
})

/** Files of the checkout, by path from its root. */
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

function subpath(name: string): string {
  return name === 'index' ? manifest.name : `${manifest.name}/${name}`
}
