/** How the report looks, by day and by night. */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1c2430; --faint: #667085; --line: #e4e7ec; --panel: #f7f8fa;
  --good: #18794e; --bad: #c62a2f; --open: #a15c00; --hold: #3b82d9; --fault: #f2b84b; --refused: #8e4ec6 }
@media (prefers-color-scheme: dark) { :root { --back: #14181f; --text: #e6e9ef; --faint: #98a2b3; --line: #2b323d;
  --panel: #1b212b; --good: #4cc38a; --bad: #ff6b6e; --open: #f0b35e; --hold: #5b9df0; --fault: #b98a2c; --refused: #bf8ef0 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 32px 24px 64px; max-width: 1280px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 26px; margin: 0 0 4px } h2 { font-size: 18px; margin: 40px 0 12px }
.faint, .about { color: var(--faint) } .about { margin: 0 }
.outcome { font-weight: 600; white-space: nowrap } h1 .outcome { margin-left: 8px }
.passed { color: var(--good) } .violated { color: var(--bad) } .inconclusive { color: var(--open) }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: 8px 16px 8px 0; border-top: 1px solid var(--line); font-weight: 400 }
td p { margin: 0 } tr .faint { font-size: 14px }
.counts { columns: 3 260px; column-gap: 40px; margin: 0 }
.counts div { display: flex; justify-content: space-between; gap: 16px; padding: 3px 0; border-top: 1px solid var(--line);
  break-inside: avoid } .counts dd { margin: 0; font-variant-numeric: tabular-nums }
code, .story { font: 13px/1.6 ui-monospace, monospace }
.story { margin: 0; padding: 12px 16px; list-style: none; background: var(--panel); border-radius: 6px; overflow-x: auto }
.story li { white-space: pre } .story li:last-child { color: var(--bad); font-weight: 600 }
.tools { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin-bottom: 10px; font-size: 13px }
.tools .buttons { gap: 4px } .tools span { display: inline-flex; align-items: center; gap: 6px } .tools svg { width: 26px; height: 16px }
button { font: inherit; padding: 2px 10px; border: 1px solid var(--line); border-radius: 5px; background: var(--panel);
  color: inherit; cursor: pointer }
.timeline { display: grid; grid-template-columns: max-content minmax(0, 1fr); border: 1px solid var(--line); border-radius: 6px;
  overflow: hidden }
.labels { padding: 24px 12px 6px; font-size: 12px; line-height: 20px; color: var(--faint); border-right: 1px solid var(--line) }
.labels .name { color: var(--text); font-weight: 600; line-height: 24px }
.axis { position: relative; height: 24px; font-size: 11px; line-height: 24px; color: var(--faint); overflow: hidden }
.axis span { position: absolute; padding-left: 4px; border-left: 1px solid var(--line); white-space: nowrap }
.plot { min-width: 0; cursor: grab; touch-action: pan-y } .plot > svg { display: block; width: 100% }
svg path { fill: none; vector-effect: non-scaling-stroke }
.row { stroke: var(--line) } .wait { fill: var(--faint); opacity: .45 } .hold { fill: var(--hold) }
.fault { fill: var(--fault); stroke: var(--fault); opacity: .28; vector-effect: non-scaling-stroke } .own { opacity: .5 }
.overlap { fill: var(--bad); stroke: var(--bad); vector-effect: non-scaling-stroke }
.refused, .harm { stroke: var(--refused); stroke-width: 8; stroke-linecap: round } .harm { stroke: var(--bad) }
.lost { stroke: var(--open); stroke-width: 3 } .died { stroke: var(--text); stroke-width: 3 }
.violation { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3 }
`

/** Lets one look closer: by the buttons, or the wheel with Ctrl; and elsewhere, by dragging. */
export const SCRIPT = `
const plot = document.querySelector('.plot'), svg = plot.querySelector('svg'), axis = plot.querySelector('.axis')
const [least, , length] = svg.getAttribute('viewBox').split(' ').map(Number), most = least + length
const height = svg.viewBox.baseVal.height
let from = least, to = most
function show(start, end) {
  const span = Math.min(Math.max(end - start, 20), length)
  from = Math.min(Math.max(start, least), most - span)
  to = from + span
  svg.setAttribute('viewBox', [from, 0, span, height].join(' '))
  const rough = span / Math.max(plot.clientWidth / 110, 1), power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough)
  const digits = Math.max(0, 3 - Math.floor(Math.log10(step)))
  axis.replaceChildren()
  for (let at = Math.ceil(from / step) * step; at < to; at += step) {
    const label = document.createElement('span')
    label.style.left = (100 * (at - from) / span) + '%'
    label.textContent = (at / 1000).toFixed(digits) + ' s'
    axis.append(label)
  }
}
function zoom(factor, share = 0.5) {
  const at = from + share * (to - from)
  show(at - (at - from) * factor, at - (at - from) * factor + (to - from) * factor)
}
plot.addEventListener('wheel', event => {
  const box = plot.getBoundingClientRect(), isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY)
  if (!isSideways && !event.ctrlKey && !event.metaKey) return
  event.preventDefault()
  const shift = event.deltaX / box.width * (to - from)
  if (isSideways) show(from + shift, to + shift)
  else zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width)
}, { passive: false })
plot.addEventListener('pointerdown', event => {
  const start = event.clientX, [left, right] = [from, to]
  plot.setPointerCapture(event.pointerId)
  plot.onpointermove = move => {
    const shift = (start - move.clientX) / plot.clientWidth * (right - left)
    show(left + shift, right + shift)
  }
  plot.onpointerup = plot.onpointercancel = () => { plot.onpointermove = null }
})
const actions = { whole: () => show(least, most), closer: () => zoom(0.5), wider: () => zoom(2) }
for (const button of document.querySelectorAll('button'))
  button.onclick = () => {
    const [start, end] = (button.dataset.span ?? '').split(' ').map(Number)
    if (button.dataset.span) show(start, end)
    else actions[button.dataset.action]()
  }
addEventListener('resize', () => show(from, to))
show(from, to)
const first = document.querySelector('button[data-span]')
if (first) first.click()
`
