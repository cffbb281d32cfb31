import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * A package as this one sees it, else as the project of the current folder does (`npx -p holdfast …`); `undefined` if it
 * is not installed. By `require`, which Jest can do without a flag; it loads ECMAScript modules too.
 */
export function load(name: string): unknown {
  for (const from of [import.meta.url, join(process.cwd(), 'any.js')]) {
    try {
      return createRequire(from)(name)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== 'MODULE_NOT_FOUND' || !message.includes(`'${name}'`)) throw error
    }
  }
  return undefined
}
