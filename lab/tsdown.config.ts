import { join, relative } from 'node:path'
import { defineConfig, type UserConfig } from 'tsdown'

const HOLDFAST = join(import.meta.dirname, '../src')

/** The entry points of holdfast that the lab uses. Its sources import them by path, and the package by name. */
const PUBLIC: Readonly<Record<string, string>> = {
  'index.ts': 'holdfast',
  'store.ts': 'holdfast/store',
  'stores/redis/index.ts': 'holdfast/redis',
  'stores/postgres/index.ts': 'holdfast/postgres',
}

const config: UserConfig = defineConfig({
  // The processes are opened by their paths.
  entry: {
    index: 'index.ts',
    'client-process': 'run/client-process.ts',
    'resource-process': 'run/resource-process.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'node22.13',
  fixedExtension: false,
  dts: false,
  copy: ['servers/clock.c', 'servers/names.c'],
  plugins: [
    {
      name: 'holdfast-by-name',
      resolveId(source, importer): { id: string; external: true } | undefined {
        const path = importer && source.startsWith('.') ? relative(HOLDFAST, join(importer, '..', source)) : '..'
        if (path.startsWith('..')) return undefined
        const id = PUBLIC[path]
        if (!id) throw new Error(`${importer} imports ${path} of holdfast: add its entry point to lab/tsdown.config.ts`)
        return { id, external: true }
      },
    },
  ],
  failOnWarn: true,
  logLevel: 'warn',
})

export default config
