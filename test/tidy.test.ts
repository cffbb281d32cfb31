import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { API, type Checker, type Program, SymbolFlags } from 'typescript/unstable/sync'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const LONGEST_FILE = 350
const HEADINGS = ['What it needs', 'What it promises', 'What can go wrong', 'Options', 'Permissions']

const manifest = JSON.parse(read('package.json'))
const subpaths: string[] = Object.keys(manifest.exports).filter(path => path !== './package.json')
const stores = files('src/stores/*/index.ts').filter(path => exportsFactory(path))

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
    const report = subpaths.map(path => `${subpathName(path)}\n${surface(path).join('\n')}\n`).join('\n')
    await expect(report).toMatchFileSnapshot('public-api.txt')
  })

  function surface(subpath: string): string[] {
    const file = program.getSourceFile(join(ROOT, sourceOf(subpath)))
    const module = file && checker.getSymbolAtLocation(file)
    if (!module)
      throw new Error(`${sourceOf(subpath)}, the source of ${subpathName(subpath)}, is missing or exports nothing`)
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

describe.each(stores.map(path => [storeName(path), path]))('the store %s', (name, path) => {
  test('is a subpath of the package', () => {
    expect(subpaths).toContain(`./${name}`)
    expect(sourceOf(`./${name}`)).toBe(path)
  })

  test('has a page with the standard headings', () => {
    const headings = read(`docs/stores/${name}.md`).matchAll(/^##+ (.*)$/gm)
    expect(Array.from(headings, ([, heading]) => heading)).toEqual(expect.arrayContaining(HEADINGS))
  })

  test('has a row in the guarantees table of the README', () => {
    expect(read('README.md')).toMatch(new RegExp(`^\\| *\\W*${name}\\b`, 'im'))
  })
})

test('the stores are found', () => {
  expect(stores.map(storeName)).toContain('memory')
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

/** A module of src/stores is a store if it exports a function of its own name; the others are parts of stores. */
function exportsFactory(path: string): boolean {
  return new RegExp(`^export (async )?function ${storeName(path)}\\b|^export \\{.*\\b${storeName(path)}\\b`, 'm').test(
    read(path),
  )
}

function storeName(path: string): string {
  return basename(dirname(path))
}

function subpathName(subpath: string): string {
  return join(manifest.name, subpath)
}

function sourceOf(subpath: string): string {
  const name = subpath.slice(2)
  const places = [`stores/${name}/index.ts`, `observe/${name}.ts`, `${name}/index.ts`]
  const candidates = ['src/index.ts', ...places.map(place => `src/${place}`)]
  const source = (name === '' ? candidates : candidates.slice(1)).find(path => existsSync(join(ROOT, path)))
  if (!source) throw new Error(`no source was found for ${subpath}`)
  return source
}
