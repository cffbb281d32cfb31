import { join } from 'node:path'
import { built } from '../built.ts'
import type { Stack } from './stack.ts'

/** An entry point of the package as users get it. */
export async function shipped<Module>(entry: string, stack: Stack): Promise<Module> {
  const { folder } = stack.use(await built())
  return (await import(join(folder, `${entry}.js`))) as Module
}
