import type { History } from './history.ts'
import { Html, html } from './html.ts'
import { SCRIPT, STYLE } from './page.ts'
import type { Span } from './span.ts'
import { timeline } from './timeline.ts'
import { type Trace, trace } from './trace.ts'
import { number, remarks, seconds, settings, type Verdict } from './verdict.ts'
import type { Violation } from './violation.ts'

/** Milliseconds to see around a violation. */
const AROUND = 500

/** One self-contained page about a run. `replay` is the command line that makes the same run again. */
export function report(history: History, verdict: Verdict, replay?: string): string {
  const { run, outcome, story } = verdict
  const traced = trace(history)
  const versions = Object.entries(run.versions).map(([what, version]) => `, ${what} ${version}`)
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>holdfast prove: ${run.engine} ${outcome}</title><style>${new Html(STYLE)}</style></head><body>
<h1>${run.engine} <span class="outcome ${outcome}">${outcome}</span></h1>
<p class="about">${settings(verdict)}${versions}</p>
${replay ? html`<p class="about">To see it again: <code>${replay}</code></p>` : ''}
<h2>Promises</h2>${promises(verdict)}
${story.length > 0 ? html`<h2>How it came about</h2><ol class="story">${story.map(line => html`<li>${line}</li>`)}</ol>` : ''}
<h2>Timeline</h2>${drawn(traced, verdict)}
<h2>What was seen</h2>${counts(verdict)}
<script>${new Html(SCRIPT)}</script></body></html>`
  return page.text
}

function promises({ rows }: Verdict): Html {
  const cells = rows.map(
    row => html`<tr><th scope="row">${row.title}</th><td class="outcome ${row.outcome}">${row.outcome}</td>
      <td>${remarks(row).map(remark => html`<p>${remark}</p>`)}</td></tr>`,
  )
  return html`<table>${cells}</table>`
}

function drawn(traced: Trace, { rows, example }: Verdict): Html {
  const violations = rows.flatMap(row => row.violations)
  const { labels, drawing, shown, drawn: some, all } = timeline(traced, violations, example?.at ?? 0)
  const around = example && look(traced, example)
  const part = html`<p class="faint">${number(some)} of ${number(all)} acquisitions are drawn, from ${seconds(shown.from)} to ${seconds(shown.to)}; the event log has them all.</p>`
  return html`<div class="tools"><span class="buttons">
    ${around ? html`<button data-span="${around.from} ${around.to}">the violation</button>` : ''}
    <button data-action="whole">all</button><button data-action="closer">closer</button><button data-action="wider">wider</button></span>
    ${LEGEND}</div>${some < all ? part : ''}
  <div class="timeline"><div class="labels">${labels}</div><div class="plot"><div class="axis"></div>${drawing}</div></div>
  <p class="faint">Drag to move, turn the wheel with Ctrl to look closer, point at a mark to read what it is.</p>`
}

/** What to look at to see it come about. */
function look({ acquisitions }: Trace, { ops, at }: Violation): Span {
  const asked = ops.flatMap(op => acquisitions.get(op)?.asked ?? [])
  return { from: Math.max(Math.min(at - AROUND, ...asked), 0), to: at + AROUND }
}

const LEGEND: Html = html`${(
  [
    ['<rect class="wait" x="2" y="7" width="22" height="2"/>', 'asks'],
    ['<rect class="hold" x="2" y="2" width="22" height="12"/>', 'holds'],
    ['<path class="lost" d="M13 0V16"/>', 'told of the loss'],
    ['<path class="died" d="M13 0V16"/>', 'died'],
    ['<path class="refused" d="M13 8h0"/>', 'write refused'],
    ['<rect class="overlap" x="2" y="2" width="22" height="12"/>', 'acts as holder while another is'],
    ['<rect class="fault own" x="2" y="1" width="22" height="14"/>', 'fault'],
    ['<path class="violation" d="M13 0V16"/>', 'violation'],
  ] as const
).map(([shape, text]) => html`<span><svg viewBox="0 0 26 16">${new Html(shape)}</svg>${text}</span>`)}`

function counts({ counts: seen, overlaps, margins }: Verdict): Html {
  const { accepted, rejected, losses, followed, faults, ...others } = seen
  const numbers: Readonly<Record<string, number>> = {
    ...others,
    'losses reported to the holder': losses,
    'takeovers from a live holder': followed,
    'writes accepted': accepted,
    'writes refused': rejected,
    ...renamed('fault: ', faults),
    ...renamed('overlaps of holders: ', overlaps),
    ...(margins &&
      renamed('from the known loss to the next grant, ms: ', { least: margins.least, median: margins.median })),
  }
  const lines = Object.entries(numbers).map(
    ([what, times]) => html`<div><dt>${what}</dt><dd>${number(times)}</dd></div>`,
  )
  return html`<dl class="counts">${lines}</dl>`
}

function renamed(prefix: string, numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(numbers).map(([what, times]) => [prefix + what, times]))
}
