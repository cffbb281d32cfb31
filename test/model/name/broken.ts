import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { NameClass } from './model.ts'

const file = new URL('../../../src/stores/rules/name.ts', import.meta.url)
const source = readFileSync(fileURLToPath(file), 'utf8')

/** The module of the rules of a name, with a mistake: `to` replaces `from`, which stands there once. */
export async function brokenRules(from: string, to: string): Promise<{ readonly Name: NameClass }> {
  if (source.split(from).length !== 2) throw new Error(`the rules should contain this once: ${from}`)
  const text = stripTypeScriptTypes(source.replace(from, () => to)).replace(/(?<= from )'(.+)'/g, (_, path) =>
    JSON.stringify(new URL(path, file).href),
  )
  return (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as { Name: NameClass }
}
