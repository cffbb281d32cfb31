import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'tsdown'
import config from '../tsdown.config.ts'

/** The package as users get it, in a folder of its own. */
export interface Built extends AsyncDisposable {
  readonly folder: string
}

export async function built(): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-built-'))
  await build({ ...config, config: false, format: 'esm', dts: false, outDir: folder })
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}
