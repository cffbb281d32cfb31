import { join, relative } from 'node:path'
import { defineConfig, type UserConfig } from 'tsdown'

const HOLDFAST = join(import.meta.dirname, '../src')

/** The entry points of holdfast that drop-ins use. Their sources import them by path, and the packages by name. */
const PUBLIC: Readonly<Record<string, string>> = {
  'index.ts': 'holdfast',
  'store.ts': 'holdfast/store',
  'stores/redis/index.ts': 'holdfast/redis',
  'stores/redlock/index.ts': 'holdfast/redlock',
}

/** How each drop-in is built. What they share becomes part of each. */
export const dropIn: UserConfig = defineConfig({
  entry: { index: 'index.ts' },
  format: ['esm', 'cjs'],
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  dts: true,
  outputOptions: { exports: 'named' },
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  plugins: [
    {
      name: 'holdfast-by-name',
      resolveId(source, importer): { id: string; external: true } | undefined {
        const path = importer && source.startsWith('.') ? relative(HOLDFAST, join(importer, '..', source)) : '..'
        if (path.startsWith('..')) return undefined
        const id = PUBLIC[path]
        if (!id) throw new Error(`${importer} imports ${path} of holdfast: add its entry point to drop-ins/build.ts`)
        return { id, external: true }
      },
    },
  ],
  checks: { legacyCjs: false },
  failOnWarn: true,
  logLevel: 'warn',
})
