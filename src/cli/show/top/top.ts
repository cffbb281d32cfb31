import { once } from 'node:events'
import { isMarker, nameOf, titleOf } from '../../../contract/reserved.ts'
import { breakOf, failedText } from '../../../dashboard/break.ts'
import { Nodes } from '../../../dashboard/nodes.ts'
import { type Look, Survey } from '../../../dashboard/survey.ts'
import type { Locks } from '../../../index.ts'
import { mask, type Output } from '../../output.ts'
import { Signals } from '../../signals.ts'
import { namesFrom } from '../names-from.ts'
import { type Query, query } from '../query.ts'
import { terminalWidth } from '../table.ts'
import { frame, printed } from './frame.ts'
import { type Act, type Key, State, type Surroundings } from './state.ts'
import { Terminal } from './terminal.ts'

/** `holdfast top`: shows who holds and who waits, until `q` or a signal. Without a terminal it prints one frame. */
export function top(args: readonly string[]): Promise<number> {
  return query('top', 'PREFIX', args, async asked => {
    const { argument: prefix, locks, values } = asked
    const survey = new Survey(namesFrom(locks, prefix))
    try {
      const { stdin, stdout } = process
      const isScreen = stdin.isTTY && stdout.isTTY && process.env.TERM !== 'dumb'
      if (values.json === true || !isScreen) await printOnce(asked, survey)
      else await new Top(asked, survey).run()
      return 0
    } finally {
      await survey.close()
    }
  })
}

async function printOnce({ argument: prefix, output, url }: Query, survey: Survey): Promise<void> {
  const look = await new Promise<Look>(resolve => survey.watch(resolve))
  if (look.failure !== undefined) throw look.failure
  const state = new State()
  state.see(look)
  const columns = terminalWidth() ?? Number.POSITIVE_INFINITY
  const around = { columns, rows: 0, now: Date.now(), store: mask(url), prefix, nodes: [] }
  const { at, isPartial } = look
  const names = state.all.map(({ name, held, holders, troubles, waiters }) => ({
    name: nameOf(name),
    state: isMarker(name) ? 'ran' : held ? 'held' : 'free',
    held,
    holders,
    troubles,
    waiters,
  }))
  output.print({ at, isPartial, names }, printed(state, around))
}

/** Runs the screen and its keys. */
class Top {
  readonly #locks: Locks
  readonly #output: Output
  readonly #survey: Survey
  readonly #allNodes: Nodes
  readonly #store: string
  readonly #prefix: string
  readonly #state = new State()
  readonly #quit = new AbortController()
  #terminal: Terminal | undefined
  #nodes: readonly string[] = []
  #isDrawing = false
  /** The name of a `break` that was not answered yet. */
  #breaking: string | undefined

  constructor({ argument, locks, output, url }: Query, survey: Survey) {
    this.#locks = locks
    this.#output = output
    this.#survey = survey
    this.#allNodes = new Nodes(locks)
    this.#store = mask(url)
    this.#prefix = argument
  }

  /** Runs until `q` or a signal. */
  async run(): Promise<void> {
    await this.#show()
    if (this.#breaking === undefined) return
    const message = `no answer came: ${this.#breaking} may have been broken; holdfast inspect shows it`
    this.#output.failed('unreadable', message)
  }

  async #show(): Promise<void> {
    const { stop } = new Signals('while it showed the leases')
    const redraw = (): void => this.#draw()
    using terminal = new Terminal(process.stdin, process.stdout, {
      redraw,
      press: key => this.#press(key),
      gone: () => this.#quit.abort(),
    })
    this.#terminal = terminal
    const unwatch = this.#survey.watch(look => this.#see(look))
    const clock = setInterval(redraw, 1_000)
    redraw()
    const end = AbortSignal.any([stop, this.#quit.signal])
    if (!end.aborted) await once(end, 'abort')
    clearInterval(clock)
    unwatch()
  }

  #see(look: Look): void {
    this.#state.see(look)
    if (!this.#state.isPaused) void this.#readNodes()
    this.#draw()
  }

  #press(key: Key): void {
    const { opened } = this.#state
    const act = this.#state.press(key)
    if (act) this.#do(act)
    if (this.#state.opened !== opened) {
      this.#nodes = []
      void this.#readNodes()
    }
    this.#drawSoon()
  }

  /** Draws once for all keys that came together, such as those of a mouse wheel. */
  #drawSoon(): void {
    if (this.#isDrawing) return
    this.#isDrawing = true
    setImmediate(() => {
      this.#isDrawing = false
      this.#draw()
    })
  }

  #do(act: Act): void {
    if (act.kind === 'quit') this.#quit.abort()
    else if (act.kind === 'suspend') this.#terminal?.suspend()
    else if (act.kind === 'redraw') this.#terminal?.forget()
    else if (act.kind === 'break') void this.#break(act.name, act.of)
  }

  /** Breaks only what was on the screen when the user was asked for the name. */
  async #break(name: string, of: string): Promise<void> {
    const shown = titleOf(name)
    this.#state.message = `Breaking ${shown} …`
    this.#breaking = shown
    try {
      const token = await breakOf(this.#locks, name, of)
      this.#state.message =
        token === undefined
          ? `Not broken: ${shown} has another holder now, or none`
          : isMarker(name)
            ? `The marker of ${shown} is removed: the next run is not skipped`
            : `${shown} was taken from its ${of.startsWith('all ') ? 'holders' : 'holder'}. Its next token is above ${token}`
    } catch (error) {
      this.#state.message = failedText(shown, error)
    }
    this.#breaking = undefined
    this.#draw()
  }

  /** Reads what the nodes of a Redlock say about the opened name. Other stores have no nodes. */
  async #readNodes(): Promise<void> {
    const { opened } = this.#state
    if (opened === undefined) return
    this.#survey.learn(opened)
    const nodes = (await this.#allNodes.get(opened)) ?? []
    if (this.#state.opened !== opened) return
    this.#nodes = nodes.map(({ name, state, reason }) => `${name} ${state}${reason ? `: ${reason}` : ''}`)
    this.#draw()
  }

  #draw(): void {
    if (!this.#terminal) return
    const { columns, rows } = this.#terminal
    const around: Surroundings = {
      ...{ columns, rows, now: Date.now() },
      ...{ store: this.#store, prefix: this.#prefix, nodes: this.#nodes },
    }
    this.#terminal.draw(frame(this.#state, around))
  }
}
