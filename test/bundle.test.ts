import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { Rolldown } from 'tsdown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sourceOf } from '../script/entries.ts'
import { type Built, built } from './built.ts'

const ROOT = join(import.meta.dirname, '..')
const PROGRAM = "export { createLocks } from 'holdfast'; export { redis } from 'holdfast/redis'"
/** Bytes, minified and compressed. */
const LARGEST = 44_000

let dist: Built
beforeAll(async () => {
  dist = await built()
})
afterAll(() => dist?.[Symbol.asyncDispose]())

test('createLocks with redis, bundled without its client, stays small', async () => {
  const chunks = await bundle(shipped())
  const { length } = gzipSync(chunks.map(({ code }) => code).join(''))
  console.log(`createLocks with redis: ${(length / 1_000).toFixed(1)} kB, minified and compressed`)
  expect(length).toBeLessThanOrEqual(LARGEST)
  const page = readFileSync(join(ROOT, 'docs/guides/serverless.md'), 'utf8')
  expect(page).toContain(`at most ${LARGEST / 1_000} kB`)
})

test('it brings no other engine', async () => {
  const paths = Object.fromEntries(
    ['holdfast', 'holdfast/redis'].map(entry => [entry, join(ROOT, sourceOf(entry) ?? '')]),
  )
  const chunks = await bundle(paths)
  const others = /src.(engines\.ts|connect\.ts|stores.(?!redis|rules|url|wire))/
  expect(chunks.flatMap(({ moduleIds }) => moduleIds).filter(id => others.test(id))).toEqual([])
})

test('scripts are shipped without comments and indentation', async () => {
  const [redis] = await bundle(shipped())
  expect(redis?.code).toMatch(/^local function \w+\(/m)
  expect(redis?.code).not.toMatch(/^\s*--|^ +local /m)
})

test('a bundle that does not know its own place reports that its driver is missing', async () => {
  const program =
    "import { connect } from 'holdfast'; connect('redis://localhost').catch(({ code }) => console.log(code))"
  const options = { transform: { define: { 'import.meta.url': 'undefined' } } } // as esbuild does in CommonJS
  const chunks = await bundle(shipped(), program, options)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bundle-'))
  try {
    for (const { fileName, code } of chunks) writeFileSync(join(folder, fileName), code)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const entry = chunks.find(({ isEntry }) => isEntry)?.fileName ?? ''
    const { stdout } = await promisify(execFile)(process.execPath, [entry], { cwd: folder })
    expect(stdout).toBe('DRIVER_MISSING\n')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

function shipped(): Record<string, string> {
  return { holdfast: join(dist.folder, 'index.js'), 'holdfast/redis': join(dist.folder, 'redis.js') }
}

/** What a bundler makes of the program, with the entry points at these paths. */
async function bundle(
  paths: Readonly<Record<string, string>>,
  program = PROGRAM,
  options: Rolldown.InputOptions = {},
): Promise<Rolldown.OutputChunk[]> {
  const made = await Rolldown.rolldown({
    ...options,
    input: 'program',
    platform: 'node',
    treeshake: { moduleSideEffects: false }, // as package.json says
    plugins: [
      {
        name: 'program',
        resolveId: id => (id === 'program' ? id : paths[id]),
        load: id => (id === 'program' ? program : undefined),
      },
    ],
  })
  const { output } = await made.generate({ minify: true })
  await made.close()
  return output.filter(part => part.type === 'chunk')
}
