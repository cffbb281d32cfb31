import { emitKeypressEvents } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import type { Line } from '../text.ts'
import { Screen } from './screen.ts'
import type { Key } from './state.ts'

/** Alternate screen on, cursor off, no wrapping of long lines, and marks around text that is pasted. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h'
const LEAVE = '\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l'

const ENDS = ['end', 'close', 'error'] as const

/** Milliseconds within which Ctrl-Z stops this process, if it can be stopped. */
const STOPPED_WITHIN = 100

export interface Events {
  /** Called when a frame is needed although no key was pressed. */
  redraw(): void
  press(key: Key): void
  /** Called when the terminal is gone. The kernel does not end a session whose leader ignores SIGHUP. */
  gone(): void
}

/** A terminal that shows full screens. However the process ends, except by SIGKILL, the terminal is as it was before. */
export class Terminal implements Disposable {
  readonly #input: ReadStream
  readonly #output: WriteStream
  readonly #screen: Screen
  readonly #events: Events
  readonly #onKey: (text: string | undefined, key: Key) => void
  readonly #onResize = (): void => this.#events.redraw()
  readonly #onStop = (): void => this.suspend()
  readonly #onContinue = (): void => this.#enter()
  readonly #restore = (): void => this.#leave()
  #isEntered = false
  #isEnded = false

  constructor(input: ReadStream, output: WriteStream, events: Events) {
    this.#input = input
    this.#output = output
    this.#screen = new Screen(output.hasColors())
    this.#events = events
    this.#onKey = (_, key) => events.press(key)
    emitKeypressEvents(input)
    input.on('keypress', this.#onKey)
    for (const end of ENDS) input.on(end, events.gone)
    output.on('resize', this.#onResize)
    process.on('exit', this.#restore)
    this.#enter()
  }

  // A terminal that does not know its size, such as a serial line, says 0.
  get columns(): number {
    return this.#output.columns || 80
  }

  get rows(): number {
    return this.#output.rows || 24
  }

  /** Shows the lines. A terminal that is slower than the frames misses some. */
  draw(lines: readonly Line[]): void {
    if (!this.#isEntered) return
    if (this.#output.writableNeedDrain) {
      this.#output.once('drain', this.#onResize)
      return
    }
    const text = this.#screen.draw(lines, this.columns, this.rows)
    if (text) this.#output.write(text)
  }

  /** Writes the next frame as a whole: another program may have written to the terminal. */
  forget(): void {
    this.#screen.forget()
  }

  /** Does what Ctrl-Z does: gives the terminal back to the shell, and stops until `fg`. */
  suspend(): void {
    if (process.platform === 'win32') return
    this.#leave()
    process.off('SIGTSTP', this.#onStop) // so that the next SIGTSTP stops this process
    process.once('SIGCONT', this.#onContinue)
    process.kill(0, 'SIGTSTP') // also stops the processes that started it, such as npx: the shell waits for them
    // Without a shell, such as in a container, nothing can continue the process, so the kernel does not stop it.
    setTimeout(this.#onContinue, STOPPED_WITHIN)
  }

  [Symbol.dispose](): void {
    this.#leave()
    this.#isEnded = true
    process.off('exit', this.#restore).off('SIGTSTP', this.#onStop).off('SIGCONT', this.#onContinue)
    this.#input.off('keypress', this.#onKey)
    for (const end of ENDS) this.#input.off(end, this.#events.gone)
    this.#output.off('resize', this.#onResize).off('drain', this.#onResize)
  }

  #enter(): void {
    if (this.#isEntered || this.#isEnded) return
    this.#isEntered = true
    this.#input.setRawMode(true)
    this.#input.resume()
    this.#screen.forget()
    this.#output.write(ENTER)
    if (process.platform !== 'win32') process.on('SIGTSTP', this.#onStop)
    this.#events.redraw()
  }

  #leave(): void {
    if (!this.#isEntered) return
    this.#isEntered = false
    this.#output.write(LEAVE)
    this.#input.setRawMode(false)
    this.#input.pause()
  }
}
