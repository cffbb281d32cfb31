import { isMarker } from '../../../contract/reserved.ts'
import { span } from '../../../dashboard/span.ts'
import type { Look } from '../../../dashboard/survey.ts'
import { verdictOf } from '../../../dashboard/verdict.ts'
import { printable } from '../../output.ts'
import { lineOf, widthsOf } from '../table.ts'
import { endOf, filled, type Line, type Run, widthOf, wrapped, wrappedWords } from '../text.ts'
import { COLUMNS, cellsOf } from './columns.ts'
import { nameLines } from './name.ts'
import type { State, Surroundings } from './state.ts'

const KEYS: readonly (readonly [key: string, effect: string])[] = [
  ['↑↓', 'choose'],
  ['Enter', 'open'],
  ['/', 'filter'],
  ['b', 'break'],
  ['p', 'pause'],
  ['q', 'quit'],
]

/** Keys that a narrow screen leaves out, in this order. */
const DISPENSABLE = ['↑↓', 'p', '/', 'b', 'Enter', 'Esc']

/** The columns before the name. They show which row is chosen, and which has trouble. */
const MARK = 3

/** The most lines for the reason of the verdict. */
const LONGEST_REASON = 3

/** On a screen with fewer rows, only the verdict is above the names, and an empty status line is left out. */
const SHORT = 8

/** The whole screen. */
export function frame(state: State, around: Surroundings): Line[] {
  const { columns, rows } = around
  const isShort = rows < SHORT
  const head = isShort ? shortHead(state, around) : headOf(state, around)
  const said = head.map(textOf).join(' ')
  const foot = [
    ...status(state, columns, said).filter(line => !isShort || widthOf(textOf(line)) > 0),
    footer(state, columns),
  ]
  const space = Math.max(0, rows - head.length - foot.length)
  const body = state.opened === undefined ? list(state, space, columns) : nameLines(state, around, space)
  const isOld = state.look?.failure !== undefined
  const lines: Line[] = [...head, ...body.slice(0, space).map(line => (isOld ? line.map(dimmed) : line))]
  while (lines.length < rows - foot.length) lines.push([])
  return [...lines.slice(0, Math.max(0, rows - foot.length)), ...foot.slice(-rows)].map(line => fitted(line, columns))
}

/** Dims what was seen before the store could no longer be read. */
function dimmed([text, style]: Run): Run {
  return [text, style === 'chosen' ? style : 'dim']
}

/** Cuts a line to the columns. A sign says that it was cut. */
function fitted(line: Line, columns: number): Line {
  let left = columns
  return line.map(([text, style = 'plain']): Run => {
    const shown = printable(text)
    const width = widthOf(shown)
    const run: Run = [width <= left ? shown : filled(shown, left), style]
    left = Math.max(0, left - width)
    return run
  })
}

function textOf(line: Line): string {
  return line.map(([text]) => text).join('')
}

/** All names as text. For a file or a pipe `columns` is missing, and nothing is cut. */
export function printed(state: State, around: Surroundings): string {
  const { columns } = around
  const lines = [...headOf(state, around), ...list(state, state.rows.length + 1, columns, false)]
  const whole = columns === Number.POSITIVE_INFINITY ? lines : lines.map(line => fitted(line, columns))
  return whole.map(line => printable(textOf(line)).trimEnd()).join('\n')
}

function headOf(state: State, around: Surroundings): Line[] {
  const { look, troubles, all } = state
  if (!look) return [header(state, around), [['Looking …']], []]
  const { level, say, why } = verdictOf(look, troubles)
  const style = level === 'ok' ? 'plain' : level
  // The end of the reason may say what to do, or who waits.
  const reasons = wrappedWords(printable(why), around.columns).slice(0, LONGEST_REASON)
  return [
    header(state, around),
    [[say.join(''), style]],
    ...(why === '' ? [] : reasons.map((line): Line => [[line]])),
    ...(look.failure !== undefined && all.length === 0 ? [] : [counts(state, look)]),
    [],
  ]
}

function shortHead(state: State, around: Surroundings): Line[] {
  const answer = headOf(state, around).slice(1, 2)
  return state.isPaused ? [[['Paused. ', 'warn'], ...answer.flat()]] : answer
}

function header({ look, isPaused, all }: State, { columns, now, store, prefix }: Surroundings): Line {
  const left = `holdfast top  ${store}${prefix && `  ${prefix}…`}`
  if (!look) return [[left, 'bold']]
  const age = now - look.at
  const isCurrent = look.failure === undefined && age < Math.max(2_000, 2 * look.pause)
  const last = look.failure !== undefined && all.length === 0 ? 'seen nothing yet' : `seen ${span(age)} ago`
  const seen = isPaused ? 'paused' : isCurrent ? `every ${span(look.pause)}` : last
  if (columns === Number.POSITIVE_INFINITY) return [[left, 'bold']] // a single look, which is not repeated
  return [
    [filled(left, columns - seen.length - 1), 'bold'],
    [` ${seen}`, isPaused || seen.startsWith('seen') ? 'warn' : 'dim'],
  ]
}

function counts(state: State, { failure, isPartial, search, since, takeovers }: Look): Line {
  const held = state.all.filter(row => row.held && !isMarker(row.name)).length
  const waiting = state.all.reduce((sum, { waiters }) => sum + waiters.length, 0)
  const least = isPartial ? 'at least ' : ''
  const time = new Date(since).toTimeString().slice(0, 8)
  const now = failure === undefined ? `${least}${held} held, ${waiting} waiting` : 'Held and waiting: unknown'
  const searching = search ? ', searching all keys for more names' : ''
  return [[`${now}, ${takeovers} taken over since ${time}${searching}`, 'dim']]
}

function list(state: State, space: number, columns: number, hasChoice = true): Line[] {
  state.fit(space - 1)
  const shown = state.rows.slice(state.first, state.first + space - 1)
  if (state.rows.length === 0) return [[[nothing(state), 'dim']]]
  // Use all rows, so that the columns stay where they are while the list is scrolled.
  const widths = widthsOf(COLUMNS, state.rows.map(cellsOf), columns, MARK)
  const titles = COLUMNS.map(({ title }) => title)
  const lines = shown.map((row, index): Line => {
    const isChosen = hasChoice && state.first + index === state.chosen
    const isBad = row.troubles.length > 0
    const text = `${isChosen ? '>' : ' '}${isBad ? '!' : ' '} ${lineOf(COLUMNS, widths, cellsOf(row))}`
    return [
      [
        isChosen ? filled(text, columns) : text,
        isChosen ? 'chosen' : isBad ? 'bad' : row.held && !isMarker(row.name) ? 'plain' : 'dim',
      ],
    ]
  })
  return [[[' '.repeat(MARK) + lineOf(COLUMNS, widths, titles), 'bold']], ...lines]
}

/** The text that says why the list has no rows. */
function nothing({ filter, look }: State): string {
  if (filter) return 'No name has this text'
  if (look?.failure !== undefined) return 'It is not known which names are held'
  return look?.isPartial ? 'No name was found yet' : ''
}

/** The status line: about the chosen row or the last key, unless the head has `said` it. A name to type is not cut. */
function status({ prompt, message, opened, rows, chosen }: State, columns: number, said: string): Line[] {
  const lines = (text: string): Line[] => wrapped(printable(text), columns).map(line => [[line, 'warn']])
  if (prompt?.kind === 'break')
    return lines(
      isMarker(prompt.name)
        ? `To remove the marker of ${prompt.title}, type its name. The next run is then not skipped.`
        : `To break ${prompt.title}, type its name${prompt.holders.length > 0 ? ' and a slot, or its name and all' : ''}. ` +
            'Its holder may work until its next renewal.',
    )
  if (message) return lines(message)
  const row = opened === undefined ? rows[chosen] : undefined
  return [[[row?.troubles.filter(text => !said.includes(text)).join('. ') ?? '', 'bad']]]
}

function footer({ prompt, filter, opened }: State, columns: number): Line {
  if (prompt) {
    const start = prompt.kind === 'break' ? 'Name: ' : '/'
    const hint = `   Enter: ${prompt.kind === 'break' ? 'break   Esc: keep' : 'done   Esc: show all'}`
    const space = columns - start.length - 1
    const text = printable(prompt.text)
    return [
      [`${start}${endOf(text, space < 2 * hint.length ? space : space - hint.length)}_`, 'bold'],
      [hint, 'dim'],
    ]
  }
  const shownFilter: Run[] = filter && opened === undefined ? [[`/${filter}`, 'warn']] : []
  let keys = opened === undefined ? KEYS : [['Esc', 'back'] as const, ...KEYS.slice(3)]
  const named = (): Line => [
    ...keys.flatMap(([key, effect], index): Run[] => [
      [key, 'bold'],
      [` ${effect}${index < keys.length - 1 || shownFilter.length > 0 ? '  ' : ''}`, 'dim'],
    ]),
    ...shownFilter,
  ]
  for (const key of DISPENSABLE) if (widthOf(textOf(named())) > columns) keys = keys.filter(([each]) => each !== key)
  return named()
}
