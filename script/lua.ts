import { createHash } from 'node:crypto'
import type { Rolldown } from 'tsdown'
import type { Program } from '../src/stores/redis/script.ts'

/** How a module makes its scripts, and their names. */
const CALL = /(?<=^export const (\w+): \w+ = )(?:scriptOf\(\{.*?^\}\)|programOf\(`.*?^`\))/gms

const TOKENS = /--[^\n]*|'(?:[^'\\\n]|\\.)*'|\d[\w.]*|[A-Za-z_]\w*|\.{2,3}|[=~<>]=|\s+|./g
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

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

/**
 * Lua without comments, indentation and long names of locals. It reads what Holdfast writes: strings in single quotes and
 * no globals of its own. A local has one short name wherever it stands.
 */
export function minified(source: string): string {
  const tokens = (source.match(TOKENS) ?? []).filter(token => !token.startsWith('--'))
  if (tokens.some(token => /^["']$/.test(token)) || source.includes('[['))
    throw new Error('a script has a string that is not in single quotes: write it so')
  const names = shortNames(tokens)
  let text = ''
  const brackets: string[] = []
  for (const [at, token] of tokens.entries()) {
    if (/^[{(]$/.test(token)) brackets.push(token)
    if (/^[})]$/.test(token)) brackets.pop()
    if (/^\s/.test(token)) text += token.includes('\n') && !text.endsWith('\n') ? '\n' : ''
    else {
      const isKey = brackets.at(-1) === '{' && next(tokens, at) === '='
      const isField = /[^.]\.$/.test(text)
      const shown = isKey || isField ? token : (names.get(token) ?? token)
      const touches = /\w$/.test(text) && (/^\w/.test(shown) || (shown === '..' && /\d$/.test(text)))
      text += touches ? ` ${shown}` : shown
    }
  }
  return text.trim()
}

/** The most frequent get the shortest. */
function shortNames(tokens: readonly string[]): Map<string, string> {
  const words = tokens.filter(token => !/^\s/.test(token))
  const locals = new Set<string>()
  for (const [at, word] of words.entries()) {
    if (word !== 'local' && word !== 'for' && word !== 'function') continue
    const end = word === 'function' ? [')'] : ['=', 'in', ';']
    let from = at + 1
    if (word === 'function' && words[from] !== '(') locals.add(words[from++] as string)
    if (word === 'local' && words[from] === 'function') continue
    // Names with commas between them; the first that follows without one is a statement.
    for (let place = from; !end.includes(words[place] as string); place += 1) {
      const each = words[place] as string
      if (/^[A-Za-z]\w*$/.test(each)) locals.add(each)
      if (word !== 'function' && words[place + 1] !== ',' && each !== ',') break
    }
  }
  const count = (name: string): number => words.filter(word => word === name).length
  const ranked = [...locals].sort((a, b) => count(b) - count(a))
  return new Map(ranked.map((name, rank) => [name, shortName(rank)]))
}

function shortName(rank: number): string {
  const round = Math.floor(rank / LETTERS.length)
  return `${LETTERS[rank % LETTERS.length]}${round || ''}`
}

function next(tokens: readonly string[], at: number): string | undefined {
  return tokens.slice(at + 1).find(token => !/^\s/.test(token))
}
