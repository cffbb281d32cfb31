import { styleText } from 'node:util'
import { LeaseError } from '../errors.ts'
import { exitCode, Failure } from './failure.ts'

/** How the program speaks: results on standard output, everything else on standard error, as text or as JSON. */
export class Output {
  readonly #json: boolean
  readonly #quiet: boolean

  /** `json`: one JSON document per result, one per line on standard error. `quiet`: errors only. */
  constructor(options: { json?: boolean | undefined; quiet?: boolean | undefined } = {}) {
    this.#json = options.json ?? false
    this.#quiet = options.quiet ?? false
  }

  /** The result of the command. */
  print(data: unknown, text: string): void {
    process.stdout.write(this.#json ? `${stringify(data, 2)}\n` : `${mask(text)}\n`)
  }

  /** What happens meanwhile, for people; `event` names it for programs. */
  tell(event: string, text: string, data: Record<string, unknown> = {}): void {
    if (!this.#quiet) this.#line({ event, message: text, ...data }, text, 'dim')
  }

  /** What the user must know even with `--quiet`. */
  warn(event: string, text: string, data: Record<string, unknown> = {}): void {
    this.#line({ event, message: text, ...data }, text, 'yellow')
  }

  /** Says what went wrong; answers the exit code. That another holds the name is no error: `quiet` hides it. */
  fail(error: unknown, exit: number = exitCode(error)): number {
    const busy = LeaseError.is(error) && error.code === 'ACQUIRE_TIMEOUT'
    if (busy && this.#quiet) return exit
    const message = error instanceof Error ? error.message : String(error)
    const details = LeaseError.is(error)
      ? error.toJSON()
      : { code: error instanceof Failure ? error.code : 'UNEXPECTED' }
    this.#line({ error: { ...details, message, exit } }, message, busy ? 'yellow' : 'red')
    return exit
  }

  #line(data: Record<string, unknown>, text: string, colour: 'dim' | 'yellow' | 'red'): void {
    const line = this.#json ? stringify(data) : `${paint(colour, 'holdfast:', process.stderr)} ${mask(text)}`
    process.stderr.write(`${line}\n`)
  }
}

/** Colours on a terminal only; `NO_COLOR` is respected. */
export function paint(
  format: 'bold' | 'dim' | 'red' | 'yellow' | 'green',
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return styleText(format, text, { stream })
}

/** Hides the passwords of every URL in the text. Greedy, since a password may hold an `@` that nobody encoded. */
export function mask(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s]*@/gi, '$1***@')
    .replace(/([?&]password=)[^\s&#]*/gi, '$1***')
}

function stringify(data: unknown, indent = 0): string {
  const replace = (_key: string, value: unknown): unknown =>
    typeof value === 'bigint' ? value.toString() : typeof value === 'string' ? mask(value) : value
  return JSON.stringify(data, replace, indent)
}
