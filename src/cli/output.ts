import { styleText } from 'node:util'
import { LeaseError } from '../contract/errors.ts'
import { mask } from '../contract/mask.ts'
import { INVISIBLE, printable } from '../contract/printable.ts'
import { exitCode, Failure, messageOf } from './failure.ts'

/** Prints results on standard output and messages on standard error, as text or as JSON. */
export class Output {
  readonly #json: boolean
  readonly #quiet: boolean

  /** `json`: prints JSON, one object per line on standard error. `quiet`: prints errors only. */
  constructor(options: { json?: boolean | undefined; quiet?: boolean | undefined } = {}) {
    this.#json = options.json ?? false
    this.#quiet = options.quiet ?? false
  }

  /**
   * Prints the result of the command. `quiet` hides the text, unless the command is useless without it (`isNeeded`).
   * `quiet` does not hide JSON. Text from a store must be `printable`.
   */
  print(data: unknown, text: string, isNeeded = false): void {
    if (this.#json) process.stdout.write(`${stringify(data, 2)}\n`)
    else if (isNeeded || !this.#quiet) process.stdout.write(`${mask(text)}\n`)
  }

  /** Prints SQL unmasked, because a mask would change what it does. `quiet` does not hide it: it is for a program. */
  printSql(sql: string): void {
    process.stdout.write(this.#json ? `${escapeInvisible(JSON.stringify({ sql }, undefined, 2))}\n` : sql)
  }

  /** Prints progress. `event` names it for programs. */
  info(event: string, text: string, data: Record<string, unknown> = {}): void {
    if (!this.#quiet) this.#line({ event, message: text, ...data }, text, 'dim')
  }

  /** Prints progress like `info`, but only with `json`. */
  event(event: string, text: string, data: Record<string, unknown>): void {
    if (this.#json) this.info(event, text, data)
  }

  /** Prints a warning, unless `quiet`. */
  warn(event: string, text: string, data: Record<string, unknown> = {}): void {
    if (!this.#quiet) this.failed(event, text, data)
  }

  /** Prints a failure after which the command continues. It is an error, so `quiet` does not hide it. */
  failed(event: string, text: string, data: Record<string, unknown> = {}): void {
    this.#line({ event, message: text, ...data }, text, 'yellow')
  }

  /** Prints an error and returns its exit code. A busy name is not an error: `quiet` hides it. */
  fail(error: unknown, exit: number = exitCode(error)): number {
    const isBusy = LeaseError.is(error) && error.code === 'BUSY'
    if (isBusy && this.#quiet) return exit
    const message = messageOf(error)
    const details = LeaseError.is(error)
      ? error.toJSON()
      : { code: error instanceof Failure ? error.code : 'UNEXPECTED' }
    this.#line({ error: { ...details, message, exit } }, message, isBusy ? 'yellow' : 'red')
    return exit
  }

  #line(data: Record<string, unknown>, text: string, colour: 'dim' | 'yellow' | 'red'): void {
    const line = this.#json ? stringify(data) : `${paint(colour, 'holdfast:', process.stderr)} ${printable(mask(text))}`
    process.stderr.write(`${line}\n`)
  }
}

/** Adds colour on a terminal, unless `NO_COLOR` is set. */
export function paint(
  format: 'bold' | 'dim' | 'red' | 'yellow' | 'green',
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return styleText(format, text, { stream })
}

export { mask, printable }

/** Converts to JSON without passwords, and with invisible characters escaped. */
export function stringify(data: unknown, indent?: number): string {
  const replace = (_key: string, value: unknown): unknown =>
    typeof value === 'bigint' ? value.toString() : typeof value === 'string' ? mask(value) : value
  return escapeInvisible(JSON.stringify(data, replace, indent))
}

function escapeInvisible(json: string): string {
  return json.replace(INVISIBLE, character => (character === '\n' ? character : escaped(character)))
}

/** The JSON escape of a character. Above U+FFFF it is a surrogate pair. */
function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
  return units.map(unit => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
