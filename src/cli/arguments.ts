import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { Usage } from './failure.ts'

/** The result of `parse`. */
export type Parsed<T extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>
>

/** The options that most commands have. */
export const COMMON: {
  readonly store: { readonly type: 'string' }
  readonly json: { readonly type: 'boolean' }
  readonly quiet: { readonly type: 'boolean'; readonly short: 'q' }
} = {
  store: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean', short: 'q' },
}

const DURATIONS = /^--(ttl|wait|max|grace|at-least|skip-if-ran-since|pause|max-pause|for|duration)$/

/** Node's `parseArgs`, with messages that say what to do. Throws `Usage`. */
export function parse<const T extends ParseArgsOptionsConfig>(command: string, args: string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const unknown = /'(-[^']*)'/.exec(message)?.[1] ?? ''
      const known = Object.keys(options).map(name => `--${name}`)
      throw new Usage(`holdfast ${command} has no option ${unknown}${suggest(unknown, known)}; ${seeHelp(command)}`)
    }
    const [, option] = /^Option '(?:-\w, )?(-[^' ]*).*ambiguous/.exec(message) ?? []
    if (option !== undefined)
      throw new Usage(`${option} needs a value: write ${option}=VALUE if that begins with -; ${seeHelp(command)}`)
    const [, missing] = /^Option '(?:-\w, )?(-[^' ]*).*argument missing/.exec(message) ?? []
    if (missing !== undefined)
      throw new Usage(
        `${missing} needs a ${DURATIONS.test(missing) ? 'duration, such as 5m' : 'value'}; ${seeHelp(command)}`,
      )
    if (code?.startsWith('ERR_PARSE_ARGS')) {
      throw new Usage(`${message.split(/[.\n]/, 1)[0]}; ${seeHelp(command)}`)
    }
    throw error
  }
}

/** Returns the one positional argument of a command. */
export function one(command: string, what: string, positionals: readonly string[]): string {
  const argument = atMostOne(command, what, positionals)
  if (argument === undefined) throw new Usage(`${what} is missing; ${seeHelp(command)}`)
  return argument
}

/** Returns the one positional argument of a command, or `undefined` if it is missing. */
export function atMostOne(command: string, what: string, [first, second]: readonly string[]): string | undefined {
  if (second !== undefined) throw new Usage(`expected one ${what}, but ${second} follows it; ${seeHelp(command)}`)
  return first
}

export function seeHelp(command: string): string {
  return `see holdfast ${command ? `${command} ` : ''}--help`
}

/** Returns a hint such as `: did you mean run?` if exactly one known word is close. */
export function suggest(word: string, known: readonly string[]): string {
  const near = known.filter(candidate => distance(word, candidate) <= Math.max(1, Math.floor(candidate.length / 3)))
  return near.length === 1 ? `: did you mean ${near[0]}?` : ''
}

/** The edit distance: how many characters to insert, remove or replace, and how many neighbours to swap. */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, i) => i)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    rows[i] = [i]
    for (let j = 1; j <= b.length; j++) {
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      rows[i]?.push(Math.min(replaced, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1))
    }
  }
  return at(a.length, b.length)
}
