import { styleText } from 'node:util'

/** The kind of a line. On a terminal each kind has a symbol and a colour. */
export type Kind = 'start' | 'run' | 'wait' | 'kill' | 'pause' | 'resume' | 'refuse' | 'done'

type Format = Parameters<typeof styleText>[0]

const LOOKS: Readonly<Record<Kind, readonly [symbol: string, format: Format]>> = {
  start: ['·', 'dim'],
  run: ['▶', 'green'],
  wait: ['○', 'dim'],
  kill: ['✗', 'red'],
  pause: ['‖', 'blue'],
  resume: ['▷', 'yellow'],
  refuse: ['✗', 'red'],
  done: ['✓', 'green'],
}
const COLOURS: readonly Format[] = ['cyan', 'magenta', 'yellow', 'blue', 'green']
const BAR = 30

/** Prints events as they happen: on a terminal with colours and a progress bar, in a pipe as plain lines. */
export class Timeline {
  readonly #started = performance.now()
  readonly #names: readonly string[]
  readonly #width: number
  readonly #terminal = process.stdout.isTTY === true
  #bar = ''
  #steps = 0

  /** `others`: what stands in place of a name. */
  constructor(names: readonly string[], others: string) {
    this.#names = names
    this.#width = Math.max(...[...names, others].map(name => name.length))
  }

  /** Prints an event of a replica. */
  event(kind: Kind, name: string, text: string): void {
    const [symbol, format] = LOOKS[kind]
    // The progress stays above the line that explains the end.
    if (kind === 'kill' || kind === 'pause' || kind === 'done') this.#keepBar()
    const sign = this.#terminal ? `${paint(format, symbol)} ` : ''
    this.print(`${this.#seconds()}  ${sign}${this.#name(name)}  ${text}`)
  }

  /** Shows progress: a bar on a terminal, every tenth step in a pipe. */
  progress(name: string, done: number, total: number): void {
    if (this.#terminal) {
      const full = Math.round((done / total) * BAR)
      const bar = paint('green', '━'.repeat(full)) + paint('dim', '╌'.repeat(BAR - full))
      this.#show(`${this.#seconds()}    ${this.#name(name)}  ${bar} ${done} of ${total}`)
    } else if (Math.floor(done / 10) > this.#steps) {
      this.#steps = Math.floor(done / 10)
      this.print(`${this.#seconds()}  ${this.#name(name)}  ${done} of ${total} orders`)
    }
  }

  /** Prints any other line, above the bar. */
  print(line = ''): void {
    const bar = this.#bar
    this.#show('')
    console.log(line)
    this.#show(bar)
  }

  /** Removes the bar. */
  end(): void {
    this.#show('')
  }

  #keepBar(): void {
    if (this.#bar) process.stdout.write('\n')
    this.#bar = ''
  }

  #show(bar: string): void {
    if (bar !== this.#bar) process.stdout.write(`\r\u001b[2K${bar}`)
    this.#bar = bar
  }

  #seconds(): string {
    return paint('dim', `${((performance.now() - this.#started) / 1_000).toFixed(1).padStart(5)} s`)
  }

  #name(name: string): string {
    const colour = COLOURS[this.#names.indexOf(name) % COLOURS.length]
    const padded = name.padEnd(this.#width)
    return colour ? paint(colour, padded) : padded
  }
}

/** Adds colour on a terminal, unless NO_COLOR is set. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout })
}
