import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sourceOf } from '../script/entries.ts'
import { helpFor } from '../src/cli/help/help.ts'
import { blocks, samplesOfPages } from './samples.ts'
import { ROOT, scriptNode, UNCACHED } from './script-node.ts'

const readme = read('README.md')

test('the README has fewer than 1,000 words', () => expect(readme.split(/\s+/).length).toBeLessThan(1_000))

describe('the samples in the documentation', () => {
  // Inside the checkout, so that the packages are found; .tools is ignored by git and by every tool.
  mkdirSync(join(ROOT, '.tools'), { recursive: true })
  const compiled = mkdtempSync(join(ROOT, '.tools/samples-'))
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-samples-'))
  const samples = samplesOfPages()
  afterAll(() => {
    for (const path of [compiled, folder]) rmSync(path, { recursive: true, force: true })
  })

  beforeAll(async () => {
    for (const { file, text } of samples) writeFileSync(join(compiled, file), overSources(text))
    const options = ['--ignoreConfig', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', '--types', 'node']
    options.push('--experimentalDecorators') // as projects with Nest
    options.push('--target', 'es2022', '--lib', 'es2024,esnext.disposable', '--module', 'nodenext')
    options.push('--rewriteRelativeImportExtensions', '--rootDir', ROOT, '--outDir', join(compiled, 'out'))
    options.push(...samples.map(({ file }) => join(compiled, file)))
    const tsc = promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), options)
    await tsc.catch((error: { stdout: string }) => expect.fail(`the samples have wrong types:\n${error.stdout}`))
    writeFileSync(join(compiled, 'out/package.json'), '{ "type": "module" }')
  }, 60_000)

  test.each(samples.filter(({ needsServer }) => !needsServer))('$title runs, and ends by itself', async sample => {
    const path = join(compiled, 'out', compiled.slice(ROOT.length), sample.file.replace(/ts$/, 'js'))
    const { code, stderr } = await scriptNode([path], { folder, env: UNCACHED })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})

/** The same program, with the sources of this checkout. */
function overSources(program: string): string {
  const moved = program
    .replaceAll(/'holdfast-(redlock|redis-semaphore)'/g, "'../../drop-ins/$1/index.ts'")
    .replaceAll("'holdfast-lab/conformance'", "'../../lab/conformance/index.ts'")
  return moved.replaceAll(/'holdfast(\/[\w/-]+)?'/g, (_, subpath = '') => `'../../${sourceOf(`holdfast${subpath}`)}'`)
}

test('every entry point that a page imports exists', () => {
  const exported = ['.', 'lab', 'drop-ins/redlock', 'drop-ins/redis-semaphore'].flatMap(folder => {
    const { name, exports } = JSON.parse(read(join(folder, 'package.json')))
    return Object.keys(exports).map(path => `${name}${path.slice(1)}`)
  })
  const pages = globSync('{README.md,docs/**/*.md,lab/*.md,drop-ins/*/*.md}', { cwd: ROOT }).map(read).join('\n')
  const imported = Array.from(pages.matchAll(/(?:from |import\(|require\()'(holdfast[^']*)'/g), ([, name = '']) => name)
  expect(imported).toContain('holdfast-lab/conformance')
  expect(imported.filter(name => !exported.includes(name))).toEqual([])
})

test('package.json and the tables of the documentation are as generated', async () => {
  const check = await scriptNode([join(ROOT, 'script/generate.ts'), '--check'], { folder: ROOT })
  expect(check).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('every code of an error is in docs/reference/errors.md', () => {
  const codes = [...read('src/contract/errors.ts').matchAll(/^ {2}\| '([A-Z_]+)'$/gm)].map(([, code]) => code as string)
  expect(codes.length).toBeGreaterThan(5)
  const page = read('docs/reference/errors.md')
  expect(codes.filter(code => !page.includes(`\n| \`${code}\``))).toEqual([])
})

test('every package that development needs is named with its reason', () => {
  const { devDependencies } = JSON.parse(read('package.json'))
  const named = [...read('CONTRIBUTING.md').matchAll(/^\| ([\w@/, -]+) \| \w/gm)].flatMap(([, names]) =>
    names?.split(', '),
  )
  expect(Object.keys(devDependencies).filter(name => !named.includes(name))).toEqual([])
})

test('the commands of the README have only options that exist', () => {
  const commands = blocks(readme, 'sh').flatMap(block => [
    ...block.matchAll(/^(?:HOLDFAST_STORE=\S+ )?holdfast (\w+)(.*?)(?: -- | *#|$)/gm),
  ])
  expect(commands.length).toBeGreaterThan(5)
  const unknown = commands.flatMap(([line, command, rest = '']) => {
    const help = helpFor(command)
    const options = [...rest.matchAll(/ (--?\w[\w-]*)/g)].map(([, option]) => option as string)
    return options.filter(option => !new RegExp(`[ ,]${option}\\b`).test(help)).map(option => `${line}: ${option}`)
  })
  expect(unknown).toEqual([])
})

test('every message of the troubleshooting page is in the sources', () => {
  const messages = [...read('docs/troubleshooting.md').matchAll(/^\| `(.+?)` \|/gm)].map(([, text]) => text as string)
  expect(messages.length).toBeGreaterThan(15)
  const sources = globSync('src/**/*.ts', { cwd: ROOT, exclude: path => path.endsWith('.test.ts') })
    .map(read)
    .join('\n')
  expect(messages.filter(message => !sources.includes(message))).toEqual([])
})

test('links lead to files that exist', () => {
  const pages = globSync(['*.md', '{docs,lab,drop-ins}/**/*.md'], {
    cwd: ROOT,
    exclude: path => path.includes('node_modules'),
  })
  const broken = pages.flatMap(page =>
    [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, target]) => `${page}: ${target}`)
      .filter(link => !existsSync(join(ROOT, dirname(page), link.split(': ')[1] as string))),
  )
  expect(broken).toEqual([])
})

test('files that are named exist', () => {
  const named = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'].flatMap(page =>
    [...read(page).matchAll(/`((?:src|test|docs|examples|script)\/[\w./-]+)`/g)].map(([, path]) => path as string),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(path => !path.includes('NAME') && !existsSync(join(ROOT, path)))).toEqual([])
})

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
