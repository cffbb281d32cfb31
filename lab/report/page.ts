import { seconds } from '../judge/format.ts'
import type { History } from '../judge/history.ts'
import type { Span } from '../judge/span.ts'
import { type Trace, trace } from '../judge/trace.ts'
import type { Verdict } from '../judge/verdict.ts'
import type { Violation } from '../judge/violation.ts'
import { Html, html } from './html.ts'
import { STYLE } from './style.ts'
import { remarks, settings } from './table.ts'
import { timeline } from './timeline.ts'

/** Milliseconds to show before and after a violation. */
const AROUND = 500

/** Pixels per millisecond, for the whole run and around a violation. */
const SCALE = 0.1
const CLOSE_SCALE = 1

/** More acquisitions make a page slow. */
const MOST_DRAWN = 3_000

/** A self-contained page about a run. `replay` is the command line that repeats the run. */
export function page(history: History, verdict: Verdict, replay: string): string {
  const { run, outcome, rows, explanation, example } = verdict
  const traced = trace(history)
  const violations = rows.flatMap(row => row.violations)
  const versions = Object.entries(run.versions).map(([what, version]) => `, ${what} ${version}`)
  const shown = spanOf(traced, example?.at ?? 0)
  const { text } = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>holdfast prove: ${run.engine} ${outcome}</title><style>${new Html(STYLE)}</style></head><body>
<h1>${run.engine}: <span class="${outcome}">${outcome}</span></h1>
<p>${settings(verdict)}${versions}</p>
<p>To repeat this run: <code>${replay}</code></p>
<h2>Promises</h2><table>${rows.map(
    row => html`<tr><th scope="row">${row.title}</th><td class="${row.outcome}">${row.outcome}</td>
      <td>${remarks(row).map(remark => html`<p>${remark}</p>`)}</td></tr>`,
  )}</table>
${
  example &&
  html`<h2>Explanation</h2><ol class="steps">${explanation.map(line => html`<li>${line}</li>`)}</ol>
${LEGEND}${timeline(traced, violations, around(traced, example), CLOSE_SCALE)}`
}
<h2>Timeline</h2><p>From ${seconds(shown.from)} to ${seconds(shown.to)} of ${seconds(traced.end)}. Point at a mark to read its details.</p>
${LEGEND}${timeline(traced, violations, shown, SCALE)}
</body></html>`
  return text
}

const LEGEND: Html = html`<p>${Object.entries({
  wait: 'waits',
  hold: 'holds',
  lost: 'notified of the loss',
  died: 'died',
  refused: 'write refused',
  overlap: 'acts as holder after the next grant',
  fault: 'fault',
  violation: 'violation',
}).map(([kind, text]) => html`<span class="${kind}">&#9632;</span> ${text} `)}</p>`

/** The whole run if it is short, else the time around this moment. */
function spanOf({ acquisitions, end }: Trace, moment: number): Span {
  const all = [...acquisitions.values()]
  if (all.length <= MOST_DRAWN) return { from: 0, to: end }
  const middle = all.findIndex(({ asked }) => asked >= moment)
  const first = Math.min(Math.max(middle - MOST_DRAWN / 2, 0), all.length - MOST_DRAWN)
  return { from: all[first]?.asked ?? 0, to: all[first + MOST_DRAWN]?.asked ?? end }
}

/** From the requests that led to the violation. */
function around({ acquisitions, end }: Trace, { ops, at }: Violation): Span {
  const asked = ops.flatMap(op => acquisitions.get(op)?.asked ?? [])
  return { from: Math.max(Math.min(at - AROUND, ...asked), 0), to: Math.min(at + AROUND, end) }
}
