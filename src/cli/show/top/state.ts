import type { Look } from '../../../dashboard/survey.ts'
import { type Trouble, troublesOf } from '../../../dashboard/troubles.ts'
import { filtered, type Row, rowsOf, type SlotHeld } from './rows.ts'

/** A key that was pressed, as `node:readline` names it. */
export interface Key {
  readonly name?: string | undefined
  /** The characters that were typed. */
  readonly sequence?: string | undefined
  readonly ctrl?: boolean | undefined
  readonly meta?: boolean | undefined
}

/** A text that is being typed. */
export interface Prompt {
  readonly kind: 'filter' | 'break'
  /** The lease to break: its name, its token, and the text to type. For a shared name also one of its slots, or `all`. */
  readonly name: string
  readonly token: string
  readonly title: string
  readonly holders: readonly SlotHeld[]
  readonly text: string
}

/** The action that the command should take now. */
export type Act =
  | { readonly kind: 'quit' | 'suspend' | 'redraw' }
  | { readonly kind: 'break'; readonly name: string; readonly of: string }

/** The most characters of a prompt. Names, owners and notes are shorter. */
const LONGEST_TEXT = 1_000

/** What the screen shows in addition to the state. */
export interface Surroundings {
  readonly columns: number
  readonly rows: number
  /** The time in milliseconds since 1970. */
  readonly now: number
  /** The store, without its password. */
  readonly store: string
  readonly prefix: string
  /** Texts about the nodes of the opened name, if it has any. */
  readonly nodes: readonly string[]
}

/** The state of the screen: what is chosen, opened and typed. */
export class State {
  filter = ''
  /** Every name of the look, and what may be wrong. */
  all: readonly Row[] = []
  troubles: readonly Trouble[] = []
  /** The list: its rows, which one is chosen, and which is the first on the screen. */
  rows: readonly Row[] = []
  chosen = 0
  first = 0
  /** The name that is shown alone. */
  opened: string | undefined
  prompt: Prompt | undefined
  isPaused = false
  /** The message that is shown until the next key. */
  message = ''
  /** The look that is shown. */
  look: Look | undefined
  /** The name of the chosen row, once a key has moved there. It stays chosen when its row moves. */
  #name: string | undefined
  #latest: Look | undefined
  /** The number of rows that the screen has for the list. */
  #page = 1
  /** The text that is being pasted. A prompt takes it at once; elsewhere it does not count as keys. */
  #pasted: string | undefined

  /** Takes in a new look. A paused screen does not show it. */
  see(look: Look): void {
    this.#latest = look
    if (!this.isPaused || !this.look) this.#show(look)
  }

  /** The row of the name that is shown alone, as long as looks show the name. */
  get openedRow(): Row | undefined {
    return this.all.find(({ name }) => name === this.opened)
  }

  /** Sets the number of rows that the screen has for the list. */
  fit(page: number): void {
    this.#page = Math.max(1, page)
    this.first = Math.max(0, Math.min(this.first, this.rows.length - this.#page, this.chosen))
    if (this.chosen >= this.first + this.#page) this.first = this.chosen - this.#page + 1
  }

  press(key: Key): Act | undefined {
    const { name, ctrl, sequence = '' } = key
    if (name === 'paste-start') this.#pasted = ''
    else if (name === 'paste-end') this.#paste()
    else if (this.#pasted !== undefined) this.#pasted += sequence
    if (this.#pasted !== undefined || name === 'paste-end') return undefined
    if (ctrl && name === 'c') return { kind: 'quit' }
    if (ctrl && name === 'z') return { kind: 'suspend' }
    if (ctrl && name === 'l') return { kind: 'redraw' }
    this.message = ''
    return this.prompt ? this.#type(this.prompt, key) : this.#command(key)
  }

  #paste(): void {
    const text = (this.#pasted ?? '').trim().replace(/\p{Cc}/gu, ' ')
    this.#pasted = undefined
    if (this.prompt) this.#edit(this.prompt, this.prompt.text + text)
  }

  #command({ name, sequence }: Key): Act | undefined {
    if (name === 'q') return { kind: 'quit' }
    if (name === 'p') this.#pause()
    else if (name === 'b') this.#askToBreak()
    else if (sequence === '/')
      this.prompt = { kind: 'filter', name: '', token: '', title: '', holders: [], text: this.filter }
    else if (name === 'escape' || name === 'backspace' || name === 'left') this.#back()
    else if (this.opened === undefined) this.#move(name, sequence)
    return undefined
  }

  #move(name: string | undefined, sequence: string | undefined): void {
    const last = this.rows.length - 1
    if (name === 'return' || name === 'enter' || name === 'right') this.opened = this.rows[this.chosen]?.name
    else if (name === 'up' || name === 'k') this.#choose(this.chosen - 1)
    else if (name === 'down' || name === 'j') this.#choose(this.chosen + 1)
    else if (name === 'pageup') this.#choose(this.chosen - this.#page)
    else if (name === 'pagedown' || name === 'space') this.#choose(this.chosen + this.#page)
    else if (name === 'end' || sequence === 'G') this.#choose(last)
    else if (name === 'home' || name === 'g') {
      this.#choose(0)
      this.#name = undefined // the first row stays chosen, whatever its name
    }
  }

  #choose(index: number): void {
    this.chosen = Math.max(0, Math.min(index, this.rows.length - 1))
    this.#name = this.rows[this.chosen]?.name
  }

  #back(): void {
    if (this.opened !== undefined) this.opened = undefined
    else {
      this.filter = ''
      this.#sort()
    }
  }

  #pause(): void {
    this.isPaused = !this.isPaused
    if (!this.isPaused && this.#latest) this.#show(this.#latest)
  }

  #show(look: Look): void {
    this.look = look
    this.troubles = troublesOf(look.signs)
    this.all = rowsOf(look, this.troubles)
    this.#sort()
  }

  #askToBreak(): void {
    const row = this.opened === undefined ? this.rows[this.chosen] : this.openedRow
    if (this.isPaused) this.message = 'Paused: who holds it now is not known (p continues)'
    else if (this.look?.failure) this.message = 'The store cannot be read: who holds it now is not known'
    else if (row?.held) {
      const { name, title, holders, held } = row
      this.prompt = { kind: 'break', name, token: held.token, title, holders, text: '' }
    } else this.message = row ? `${row.title} is free` : 'No name is chosen'
  }

  #type(prompt: Prompt, { name, sequence = '', ctrl, meta }: Key): Act | undefined {
    if (name === 'escape') this.#end(prompt.kind === 'filter' ? '' : undefined)
    else if (name === 'return' || name === 'enter') return this.#enter(prompt)
    else if (name === 'backspace') this.#edit(prompt, [...prompt.text].slice(0, -1).join(''))
    else if (ctrl && name === 'u') this.#edit(prompt, '')
    else if (!ctrl && !meta && !/\p{Cc}/u.test(sequence)) this.#edit(prompt, prompt.text + sequence)
    return undefined
  }

  #edit(prompt: Prompt, text: string): void {
    this.prompt = { ...prompt, text: text.slice(0, LONGEST_TEXT) }
    if (prompt.kind === 'filter') {
      this.filter = this.prompt.text
      this.#sort()
      if (!this.rows.some(row => row.name === this.#name)) this.chosen = 0
    }
  }

  #enter({ kind, name, token, title, holders, text }: Prompt): Act | undefined {
    this.#end()
    if (kind === 'filter') return undefined
    const isTyped = (which = ''): boolean => [name, title].some(each => text === each + which)
    if (holders.length === 0 && isTyped()) return { kind: 'break', name, of: token }
    if (holders.length > 0 && isTyped(' all')) return { kind: 'break', name, of: `all ${highestOf(holders)}` }
    const holder = holders.find(({ slots }) => slots.some(slot => isTyped(` ${slot}`)))
    if (holder) return { kind: 'break', name, of: holder.token }
    if (holders.length > 0) this.message = `Not broken: ${text || 'nothing'} was typed, not ${title} and a slot or all`
    else this.message = `Not broken: ${text || 'nothing'} was typed, not ${title}`
    return undefined
  }

  #end(filter?: string): void {
    this.prompt = undefined
    if (filter === undefined) return
    this.filter = filter
    this.#sort()
  }

  #sort(): void {
    this.rows = filtered(this.all.filter(isListed), this.filter)
    const at = this.rows.findIndex(({ name }) => name === this.#name)
    if (at >= 0) this.chosen = at
    else if (this.#name === undefined) this.chosen = 0
    this.chosen = Math.max(0, Math.min(this.chosen, this.rows.length - 1))
  }
}

function highestOf(holders: readonly SlotHeld[]): bigint {
  return holders.map(({ token }) => BigInt(token)).reduce((most, token) => (token > most ? token : most))
}

/** Is the row listed? A free name without waiters is not: it was only held lately. */
function isListed({ held, waiters, troubles }: Row): boolean {
  return held !== undefined || waiters.length > 0 || troubles.length > 0
}
