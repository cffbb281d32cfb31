import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Rolldown } from 'tsdown'
import { expect, test } from 'vitest'
import { sourceOf } from '../script/entries.ts'

const PATHS: Record<string, string> = Object.fromEntries(
  ['holdfast', 'holdfast/redis'].map(entry => [entry, join(import.meta.dirname, '..', sourceOf(entry) ?? '')]),
)
const PROGRAM = "export { createLocks } from 'holdfast'; export { redis } from 'holdfast/redis'"
/** Bytes, minified and compressed. */
const LARGEST = 27_500

test('createLocks with redis, bundled without its client, stays small', async () => {
  const bundle = await Rolldown.rolldown({
    input: 'program',
    platform: 'node',
    treeshake: { moduleSideEffects: false }, // as package.json says
    plugins: [
      {
        name: 'program',
        resolveId: id => (id === 'program' ? id : PATHS[id]),
        load: id => (id === 'program' ? PROGRAM : undefined),
      },
    ],
  })
  const { output } = await bundle.generate({ minify: true })
  await bundle.close()
  const chunks = output.filter(part => part.type === 'chunk')
  const { length } = gzipSync(chunks.map(({ code }) => code).join(''))
  console.log(`createLocks with redis: ${(length / 1_000).toFixed(1)} kB, minified and compressed`)
  expect(length).toBeLessThanOrEqual(LARGEST)
  const others = /src.(engines\.ts|connect\.ts|stores.(?!redis|shared))/
  expect(chunks.flatMap(({ moduleIds }) => moduleIds).filter(id => others.test(id))).toEqual([])
})
