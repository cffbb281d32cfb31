import { isOwn, type Report, summary } from './report.ts'
import { isRedis, rounded } from './scenario.ts'

interface Panel {
  readonly title: string
  readonly note: string
  readonly scenario: string
  readonly variant: string
  readonly value: string
}

const panels: readonly Panel[] = [
  {
    title: 'Acquire and release',
    note: 'pairs/s, 64 at a time; more is better',
    ...at('pairs', '64 at a time', 'rate'),
  },
  { title: 'Handoffs', note: '32 waiters, handoffs/s; more is better', ...at('handoffs', '', 'rate') },
  {
    title: '1,000 waiters',
    note: 'commands/s of Redis while they wait; less is better',
    ...at('crowd', '1,000 waiters', 'commands'),
  },
  {
    title: 'Redlock: acquire and release by a majority of five',
    note: 'pairs/s, 64 at a time; more is better',
    ...at('redlock-pairs', '64 at a time', 'rate'),
  },
]

const WIDTH = 840
const LABELS = 280
const BAR = 16
const STEP = 22
const TOP = 46

/** A panel of bars for each thing that a reader of the README should see first. Readable on light and on dark. */
export function chart(report: Report): string {
  let y = 0
  const drawn = panels.map(panel => {
    const { svg, height } = draw(report, panel, y)
    y += height
    return svg
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img">
<title>Holdfast compared with other lock libraries</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #57606a }
  .title { font-weight: 600; font-size: 15px; fill: #24292f }
  .own { font-weight: 600; fill: #24292f }
  rect { fill: #8c959f }
  rect.own { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #8b949e }
    .title, text.own { fill: #e6edf3 }
    rect { fill: #6e7681 }
    rect.own { fill: #58a6ff }
  }
</style>
${drawn.join('\n')}
</svg>
`
}

function draw(report: Report, panel: Panel, top: number): { svg: string; height: number } {
  const { scenario, variant, value } = panel
  const bars = report.peers(scenario, variant).flatMap(peer => {
    const found = summary(report.values(scenario, variant, peer, value))
    const over = report.results.overs[peer]
    return found && (isRedis(over) || over === 'broker') ? [{ peer, middle: found.middle }] : []
  })
  if (bars.length === 0) return { svg: '', height: 0 }
  bars.sort((a, b) => b.middle - a.middle)
  const most = Math.max(...bars.map(({ middle }) => middle), 1)
  const rows = bars.map(({ peer, middle }, index) => {
    const y = top + TOP + index * STEP
    const own = isOwn(peer) ? ' class="own"' : ''
    const width = Math.max((middle / most) * (WIDTH - LABELS - 80), 1).toFixed(1)
    const label = escaped(report.results.labels[peer] ?? peer)
    return `<text x="${LABELS - 8}" y="${y + 12}" text-anchor="end"${own}>${label}</text>
<rect x="${LABELS}" y="${y}" width="${width}" height="${BAR}" rx="2"${own}/>
<text x="${LABELS + Number(width) + 6}" y="${y + 12}"${own}>${rounded(middle)}</text>`
  })
  const head = `<text x="0" y="${top + 18}" class="title">${panel.title}</text>
<text x="0" y="${top + 36}">${panel.note}</text>`
  return { svg: [head, ...rows].join('\n'), height: TOP + bars.length * STEP + 18 }
}

function at(scenario: string, variant: string, value: string): Pick<Panel, 'scenario' | 'variant' | 'value'> {
  return { scenario, variant, value }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
