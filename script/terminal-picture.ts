import { widthOf } from '../src/cli/show/text.ts'

/** Pixels. With the fallback fonts a column is between 7.7 and 8.4 wide; `textLength` makes it the same for all. */
const CELL = { width: 8.4, height: 20 }
const PADDING = 16
const COLOURS = ['#484f58', '#ff7b72', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#e6edf3']
const TEXT = '#e6edf3'
const DIM = '#9aa4b0'
const GROUND = '#161b22'
const FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"

/** The style that codes of the terminal have set. */
interface Look {
  readonly colour?: string | undefined
  readonly isBold?: boolean
  readonly isDim?: boolean
  readonly isReverse?: boolean
}

/**
 * A screen as SVG, from the text and codes of `tmux capture-pane -p -e`. It is dark on any page, and needs no font. With `pace`
 * a line that begins with a time appears after that time, divided by `pace`; the lines below it appear with it.
 */
export function terminalPicture(title: string, screen: string, columns: number, pace?: number): string {
  const lines = screen.trimEnd().split('\n')
  const width = columns * CELL.width + 2 * PADDING
  const height = lines.length * CELL.height + 2 * PADDING
  let look: Look = {}
  let delay = 0
  const drawn = lines.map((line, row) => {
    const found = runs(line, look)
    look = found.look
    const [, time] = /^ *([\d.]+) s /.exec(found.parts.map(([text]) => text).join('')) ?? []
    if (pace && time !== undefined) delay = Number(time) / pace
    let column = 0
    const words = found.parts.map(([text, style]) => {
      const word = draw(text, style, column, row)
      column += widthOf(text)
      return word
    })
    return delay > 0 ? `<g style="animation-delay:${delay.toFixed(1)}s">${words.join('')}</g>` : words.join('')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>
text { font: 14px ${FONTS}; fill: ${TEXT}; white-space: pre }
.b { font-weight: bold }
@media (prefers-reduced-motion: no-preference) { g { animation: appear 1ms both } }
@keyframes appear { from { opacity: 0 } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="${GROUND}"/>
${drawn.filter(line => line !== '').join('\n')}
</svg>
`
}

/** The texts of one style each, and the style at the end of the line. */
function runs(line: string, before: Look): { parts: [text: string, look: Look][]; look: Look } {
  const [first = '', ...rest] = line.split('\u001b[')
  let look = before
  const parts: [string, Look][] = [[first, look]]
  for (const each of rest) {
    const end = each.indexOf('m')
    look = each.slice(0, end).split(';').map(Number).reduce(changed, look)
    parts.push([each.slice(end + 1), look])
  }
  return { parts, look }
}

function changed(look: Look, code: number): Look {
  if (code === 0) return {}
  if (code === 1) return { ...look, isBold: true }
  if (code === 2) return { ...look, isDim: true }
  if (code === 7) return { ...look, isReverse: true }
  // 30 to 37 and 90 to 97 are colours, and 39 is none. The others are of the ground, which nothing sets.
  return Math.floor(code / 10) === 4 ? look : { ...look, colour: COLOURS[code % 10] }
}

/** Words that two spaces part are placed each, so that columns are in line with any font. */
function draw(text: string, { colour, isBold, isDim, isReverse }: Look, column: number, row: number): string {
  const y = PADDING + row * CELL.height
  const at = (columns: number): string => (PADDING + columns * CELL.width).toFixed(1)
  const length = (words: string): string => (widthOf(words) * CELL.width).toFixed(1)
  const fill = isReverse ? GROUND : isDim ? DIM : colour
  const style = `${isBold ? ' class="b"' : ''}${fill ? ` style="fill:${fill}"` : ''}`
  const words = Array.from(text.matchAll(/\S+(?: \S+)*/g), ({ 0: word, index }) => {
    const x = at(column + widthOf(text.slice(0, index)))
    return `<text x="${x}" y="${y + 15}" textLength="${length(word)}" lengthAdjust="spacingAndGlyphs"${style}>${escaped(word)}</text>`
  })
  const ground = `<rect x="${at(column)}" y="${y}" width="${length(text)}" height="${CELL.height}" fill="${TEXT}"/>`
  return `${isReverse && text ? ground : ''}${words.join('')}`
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`)
}
