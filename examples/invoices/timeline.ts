import { styleText } from 'node:util'

/** What a line of the timeline is about. On a terminal each has a symbol and a colour. */
export type Kind = 'start' | 'run' | 'wait' | 'kill' | 'freeze' | 'resume' | 'refuse' | 'done'

type Format = Parameters<typeof styleText>[0]

const LOOKS: Readonly<Record<Kind, readonly [symbol: string, format: Format]>> = {
  start: ['┬', 'dim'],
  run: ['▶', 'green'],
  wait: ['○', 'dim'],
  kill: ['✗', 'red'],
  freeze: ['‖', 'blue'],
  resume: ['▷', 'yellow'],
  refuse: ['✗', 'red'],
  done: ['✓', 'green'],
}
const COLOURS: readonly Format[] = ['cyan', 'magenta', 'yellow', 'blue', 'green']
const BAR = 30

/** Prints what happens as it happens: with colours and a moving bar on a terminal, as plain lines in a pipe. */
export class Timeline {
  readonly #started = performance.now()
  readonly #names: readonly string[]
  readonly #width: number
  readonly #terminal = process.stdout.isTTY === true
  #bar = ''
  #steps = 0

  constructor(names: readonly string[]) {
    this.#names = names
    this.#width = Math.max(...names.map(name => name.length))
  }

  /** One line of the story. */
  say(kind: Kind, who: string, text: string): void {
    const [symbol, format] = LOOKS[kind]
    // How far it came stays above the line that says why it ended.
    if (kind === 'kill' || kind === 'freeze' || kind === 'done') this.#keepBar()
    const sign = this.#terminal ? `${paint(format, symbol)} ` : ''
    this.print(`${this.#seconds()}  ${sign}${this.#name(who)}  ${kind === 'wait' ? paint('dim', text) : text}`)
  }

  /** How far the work is: a bar that moves on a terminal, every tenth step in a pipe. */
  progress(who: string, done: number, total: number): void {
    if (this.#terminal) {
      const full = Math.round((done / total) * BAR)
      const bar = '█'.repeat(full) + paint('dim', '░'.repeat(BAR - full))
      this.#show(`${this.#seconds()}    ${this.#name(who)}  ${bar} ${done} of ${total}`)
    } else if (Math.floor(done / 10) > this.#steps) {
      this.#steps = Math.floor(done / 10)
      this.print(`${this.#seconds()}  ${this.#name(who)}  ${done} of ${total} orders`)
    }
  }

  /** Any other line. The bar stays below it. */
  print(line = ''): void {
    const bar = this.#bar
    this.#show('')
    console.log(line)
    this.#show(bar)
  }

  /** From here on there is no bar. */
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

  #name(who: string): string {
    const colour = COLOURS[this.#names.indexOf(who) % COLOURS.length]
    const padded = who.padEnd(this.#width)
    return colour ? paint(colour, padded) : padded
  }
}

/** Styled on a terminal; plain in a pipe, or with NO_COLOR. */
export function paint(format: Format, text: string): string {
  return styleText(format, text, { stream: process.stdout })
}
