import { join, relative } from 'node:path'
import type { UserConfig } from 'tsdown'
import { ENTRIES } from './entries.ts'

const ROOT = join(import.meta.dirname, '..')
const NAMES = new Map(Object.entries(ENTRIES).map(([name, path]) => [path, name === 'index' ? '' : `/${name}`]))

/** The lab bundles the rules of a name, to judge stores by them. */
const RULES = 'src/stores/rules/'

/** For packages beside `holdfast`: their sources import its entry points by path, and the packages by name. */
export const holdfastByName: NonNullable<UserConfig['plugins']> = {
  name: 'holdfast-by-name',
  resolveId(source: string, importer: string | undefined): { id: string; external: true } | undefined {
    const path = importer && source.startsWith('.') ? relative(ROOT, join(importer, '..', source)) : ''
    if (!path.startsWith('src/') || path.startsWith(RULES) || importer?.startsWith(join(ROOT, 'src'))) return undefined
    const name = NAMES.get(path)
    if (name === undefined) throw new Error(`${importer} imports ${path}, which is no entry point of holdfast`)
    return { id: `holdfast${name}`, external: true }
  },
}
