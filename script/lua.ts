import { createHash } from 'node:crypto'
import type { Rolldown } from 'tsdown'
import type { Program } from '../src/stores/redis/script.ts'

/** How a module makes its scripts, and their names. */
const CALL = /(?<=^export const (\w+): \w+ = )(?:scriptOf\(\{.*?^\}\)|programIn\('.*?'\))/gms

/** Strings, which stay, and the beginnings of others; comments and ends of lines; signs with spaces around them. */
const TOKENS = /'(?:[^'\\\n]|\\.)*'|"|\[\[|(?: *(?:--.*)?\n)+ *| ?([=+*/<>,#{}()]) ?/g

/** Puts scripts into the package in the form in which servers get them. What minifies JavaScript leaves texts alone. */
export function minifiedScripts(): Rolldown.Plugin {
  return {
    name: 'minified-scripts',
    async transform(code, id) {
      if (code.search(CALL) < 0) return undefined
      const scripts = (await import(id)) as Record<string, Program>
      const shipped = (_: string, name: string): string => {
        const source = minified(scripts[name]?.source ?? '')
        return JSON.stringify({ ...scripts[name], source, sha: createHash('sha1').update(source).digest('hex') })
      }
      return { code: code.replace(CALL, shipped), map: null }
    },
  }
}

/** Lua without comments, indentation and spaces around signs. It reads what Holdfast writes: strings in single quotes. */
export function minified(source: string): string {
  const text = source.replaceAll(TOKENS, (token, sign?: string) => {
    if (/^("|\[\[)/.test(token)) throw new Error('a script has a string that is not in single quotes: write it so')
    return sign ?? (token.includes('\n') ? '\n' : token)
  })
  return text.trim()
}
