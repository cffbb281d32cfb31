import { type Acquisition, NEVER, type Write } from './acquisition.ts'
import { type Html, html } from './html.ts'
import { type Overlap, overlapsOf } from './overlap.ts'
import type { Span } from './span.ts'
import { type Fault, struck, type Trace } from './trace.ts'
import { seconds } from './verdict.ts'
import type { Violation } from './violation.ts'

/** More than this many acquisitions are too many to look at, and slow in a browser. */
const MOST_DRAWN = 3_000

/** Pixels of a row, and of the line above each name. */
const ROW = 20
const HEAD = 24

/** Who held what, when, and what went wrong meanwhile: a row for each client under each name. */
export interface Timeline {
  readonly labels: Html
  readonly drawing: Html
  readonly shown: Span
  /** How many acquisitions are drawn, of how many. */
  readonly drawn: number
  readonly all: number
}

/** Of the whole run if it is short, else of the time about this moment. */
export function timeline(trace: Trace, violations: readonly Violation[], moment: number): Timeline {
  const all = [...trace.acquisitions.values()]
  const { shown, drawn } = choose(trace, all, moment)
  const rows = new Rows(trace)
  const isShown = ({ from, to }: Span): boolean => to >= shown.from && from <= shown.to
  const faults = trace.faults.filter(({ at, until }) => isShown({ from: at, to: until }))
  const overlaps = overlapsOf(trace).filter(({ from, until }) => isShown({ from, to: until }))
  const broken = violations.filter(({ at }) => isShown({ from: at, to: at }))
  const drawing = html`<svg viewBox="${shown.from} 0 ${shown.to - shown.from} ${rows.height}" preserveAspectRatio="none"
    style="height:${rows.height}px" role="img" aria-label="Clients by name over time">
    ${rows.lines(shown)}${faults.map(fault => drawFault(fault, rows))}
    ${drawn.map(each => drawAcquisition(each, rows.top(each.name, each.client), trace.end))}
    ${overlaps.map(overlap => drawOverlap(overlap, rows))}
    ${broken.map(violation => drawViolation(violation, trace, rows))}</svg>`
  return { labels: rows.labels(), drawing, shown, drawn: drawn.length, all: all.length }
}

function choose(
  trace: Trace,
  all: readonly Acquisition[],
  about: number,
): { shown: Span; drawn: readonly Acquisition[] } {
  if (all.length <= MOST_DRAWN) return { shown: { from: 0, to: trace.end }, drawn: all }
  const middle = all.findIndex(({ asked }) => asked >= about)
  const first = Math.min(Math.max(middle - MOST_DRAWN / 2, 0), all.length - MOST_DRAWN)
  const drawn = all.slice(first, first + MOST_DRAWN)
  return { shown: { from: drawn[0]?.asked ?? 0, to: all[first + MOST_DRAWN]?.asked ?? trace.end }, drawn }
}

class Rows {
  readonly height: number
  readonly #names: readonly string[]
  readonly #clients: readonly number[]

  constructor({ run, history }: Trace) {
    this.#names = run.names
    const clients = new Set(history.flatMap(event => (event.kind === 'started' ? [event.client] : [])))
    for (const event of history) if (event.kind === 'asked') clients.add(event.client)
    this.#clients = [...clients].sort((one, other) => one - other)
    this.height = this.#names.length * this.#section
  }

  get #section(): number {
    return HEAD + this.#clients.length * ROW
  }

  top(name: string, client: number): number {
    return this.#names.indexOf(name) * this.#section + HEAD + this.#clients.indexOf(client) * ROW
  }

  /** Every row of a client. */
  tops(client: number): number[] {
    return this.#names.map(name => this.top(name, client))
  }

  labels(): Html {
    const clients = this.#clients.map(client => html`<div style="height:${ROW}px">client ${client}</div>`)
    return html`${this.#names.map(name => html`<div class="name" style="height:${HEAD}px">${name}</div>${clients}`)}`
  }

  lines({ from, to }: Span): Html[] {
    return this.#names.flatMap(name =>
      this.#clients.map(client => html`<path class="row" d="M${from} ${this.top(name, client) + ROW}H${to}"/>`),
    )
  }
}

function drawFault(fault: Fault, rows: Rows): Html {
  const { at, until, what, target } = fault
  const client = struck(fault)
  const title = html`<title>${what} (${target}), ${seconds(at)}${until > at ? ` to ${seconds(until)}` : ''}</title>`
  if (client === undefined) return bar('fault', at, until, 0, rows.height, title)
  return html`${rows.tops(client).map(top => bar('fault own', at, until, top, ROW, title))}`
}

function drawAcquisition(each: Acquisition, top: number, end: number): Html {
  const { asked, settled, granted, lost, died, over, client, op, token, name, writes, believedUntil } = each
  const middle = top + ROW / 2
  const waiting = bar('wait', asked, Math.min(settled, end), middle - 1, 2)
  if (granted === NEVER) return waiting
  const about = html`<title>client ${client} held ${name}, token ${token}, ${seconds(granted)} to ${seconds(Math.min(believedUntil, end))} (acquisition ${op})</title>`
  const isLost = lost === over && lost !== NEVER
  return html`${waiting}${bar('hold', granted, Math.min(believedUntil, end), top + 4, ROW - 8, about)}
    ${writes.map(({ decision, token: shown }) => drawRefusal(decision, shown, top))}
    ${isLost ? tick('lost', lost, top, `client ${client} is told that it lost ${name}, ${seconds(lost)}`) : ''}
    ${died === over && died !== NEVER ? tick('died', died, top, `client ${client} died, ${seconds(died)}`) : ''}`
}

function drawRefusal(decision: Write['decision'], token: bigint, top: number): Html | '' {
  if (decision?.kind !== 'rejected') return ''
  const title = html`<title>a write with token ${token} was refused, ${seconds(decision.at)}</title>`
  return dot('refused', decision.at, top, title)
}

function drawOverlap({ older, newer, from, until, excuse, effect }: Overlap, rows: Rows): Html {
  const title = html`<title>client ${older.client} still acted as holder after client ${newer.client} was granted it: ${excuse ?? 'nothing excuses it'}; ${effect}</title>`
  return bar('overlap', from, Math.max(until, from), rows.top(older.name, older.client) + 2, ROW - 4, title)
}

function drawViolation({ at, name, what, ops }: Violation, { acquisitions }: Trace, rows: Rows): Html {
  const title = html`<title>${seconds(at)} ${name}: ${what}</title>`
  const parties = ops.flatMap(op => acquisitions.get(op) ?? [])
  const dots = parties.slice(-1).map(({ client }) => dot('harm', at, rows.top(name, client), title))
  return html`<path class="violation" d="M${at} 0V${rows.height}">${title}</path>${dots}`
}

/** What lasts no time is seen as well: strokes keep their width. */
function bar(kind: string, from: number, to: number, top: number, height: number, title: Html | '' = ''): Html {
  return html`<rect class="${kind}" x="${from}" y="${top}" width="${Math.max(to - from, 0.1).toFixed(1)}" height="${height}">${title}</rect>`
}

function dot(kind: string, at: number, top: number, title: Html): Html {
  return html`<path class="${kind}" d="M${at} ${top + ROW / 2}h0">${title}</path>`
}

function tick(kind: string, at: number, top: number, title: string): Html {
  return html`<path class="${kind}" d="M${at} ${top + 1}v${ROW - 2}"><title>${title}</title></path>`
}
