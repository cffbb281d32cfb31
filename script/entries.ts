import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ENGINES } from '../src/engines.ts'

const ROOT = join(import.meta.dirname, '..')

/** The entry points of the package by name, in `dist` and after `holdfast/`, each with its source. */
export const ENTRIES: Readonly<Record<string, string>> = {
  index: 'src/index.ts',
  'current-lease': 'src/current-lease.ts',
  store: 'src/store.ts',
  cas: 'src/stores/cas/index.ts',
  ...Object.fromEntries(ENGINES.map(({ name }) => [name, `src/stores/${name}/index.ts`])),
  ...Object.fromEntries(fences().map(name => [`fencing/${name}`, `src/fencing/${name}/index.ts`])),
  prometheus: 'src/observe/prometheus.ts',
  otel: 'src/observe/otel.ts',
  dashboard: 'src/dashboard/dashboard.ts',
  nestjs: 'src/integrations/nestjs/index.ts',
  testing: 'src/testing/index.ts',
}

/** The names of the fences: each has a folder. */
function fences(): string[] {
  return globSync('src/fencing/*/index.ts', { cwd: ROOT })
    .map(path => basename(join(path, '..')))
    .sort()
}

/** The source of `holdfast`, or of `holdfast/NAME`. */
export function sourceOf(subpath: string): string | undefined {
  return ENTRIES[subpath.replace(/^holdfast$|^holdfast\//, '') || 'index']
}
