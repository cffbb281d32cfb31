import { type Acquisition, NEVER } from '../judge/acquisition.ts'
import { seconds } from '../judge/format.ts'
import { type Overlap, overlapsOf } from '../judge/overlap.ts'
import type { Span } from '../judge/span.ts'
import { struck, type Trace } from '../judge/trace.ts'
import type { Violation } from '../judge/violation.ts'
import { type Html, html } from './html.ts'

/** Pixels of a row, of the line above each name, and between two labels of the time axis. */
const ROW = 20
const HEAD = 24
const TICK = 100

/** Draws who held each name, and the faults: a row for each client and name. `scale`: pixels per millisecond. */
export function timeline(trace: Trace, violations: readonly Violation[], span: Span, scale: number): Html {
  return new Drawing(trace, span, scale).draw(violations)
}

class Drawing {
  readonly #trace: Trace
  readonly #span: Span
  readonly #scale: number
  readonly #clients: readonly number[]

  constructor(trace: Trace, span: Span, scale: number) {
    this.#trace = trace
    this.#span = span
    this.#scale = scale
    const clients = new Set([...trace.acquisitions.values()].map(({ client }) => client))
    this.#clients = [...clients].sort((one, other) => one - other)
  }

  draw(violations: readonly Violation[]): Html {
    const { run, faults, acquisitions } = this.#trace
    const [width, height] = [this.#x(this.#span.to), HEAD + run.names.length * this.#section]
    const rows = run.names.flatMap(name => this.#clients.map(client => this.#top(name, client) + ROW))
    const ticks = Array.from({ length: Math.floor(width / TICK) + 1 }, (_, index) => index * TICK)
    const labels = run.names.map(
      name => html`<div style="height:${HEAD}px"><b>${name}</b></div>
        ${this.#clients.map(client => html`<div style="height:${ROW}px">client ${client}</div>`)}`,
    )
    return html`<div class="timeline"><div class="labels"><div style="height:${HEAD}px"></div>${labels}</div>
      <div class="plot"><svg width="${width}" height="${height}" role="img" aria-label="Clients by name over time">
      ${ticks.map(x => html`<text x="${x}" y="16">${seconds(this.#span.from + x / this.#scale)}</text>`)}
      ${rows.map(y => html`<path class="row" d="M0 ${y}H${width}"/>`)}
      ${faults.map(fault => this.#fault(fault, height))}
      ${[...acquisitions.values()].map(each => this.#acquisition(each))}
      ${overlapsOf(this.#trace).map(each => this.#overlap(each))}
      ${violations.map(({ at, name, what }) => this.#mark('violation', at, HEAD, height, `${name}: ${what}`))}
      </svg></div></div>`
  }

  get #section(): number {
    return HEAD + this.#clients.length * ROW
  }

  #x(at: number): number {
    return Math.round((at - this.#span.from) * this.#scale * 10) / 10
  }

  #top(name: string, client: number): number {
    return 2 * HEAD + this.#trace.run.names.indexOf(name) * this.#section + this.#clients.indexOf(client) * ROW
  }

  #fault(fault: Trace['faults'][number], height: number): (Html | false)[] {
    const { at, until, what, target } = fault
    const client = struck(fault)
    const title = `${what} (${target}), ${seconds(at)} to ${seconds(until)}`
    if (client === undefined) return [this.#bar('fault', at, until, HEAD, height, title)]
    return this.#trace.run.names.map(name => this.#bar('fault', at, until, this.#top(name, client), ROW, title))
  }

  #acquisition(each: Acquisition): Html {
    const { asked, settled, granted, lost, died, over, client, token, name, writes, believedUntil } = each
    const top = this.#top(name, client)
    const holds = `client ${client} held ${name} with token ${token}, ${seconds(granted)} to ${seconds(believedUntil)}`
    const refused = writes.flatMap(({ decision }) => (decision?.kind === 'rejected' ? [decision.at] : []))
    return html`${this.#bar('wait', asked, settled, top + 9, 2)}
      ${granted !== NEVER && this.#bar('hold', granted, believedUntil, top + 4, 12, holds)}
      ${refused.map(at => this.#mark('refused', at, top + 10, 0, `a write with token ${token} was refused`))}
      ${lost === over && this.#mark('lost', lost, top + 4, 12, `client ${client} is notified that it lost ${name}`)}
      ${granted !== NEVER && died === over && this.#mark('died', died, top + 4, 12, `client ${client} died`)}`
  }

  #overlap({ older, newer, from, until, excuse, effect }: Overlap): Html | false {
    const what = `client ${older.client} still acted as holder after the grant of client ${newer.client}`
    const title = `${what}: ${excuse ? `excused by ${excuse}` : 'not excused'}, ${effect}`
    return this.#bar('overlap', from, until, this.#top(older.name, older.client) + 2, 16, title)
  }

  /** Draws the part within the span, if there is any. */
  #bar(kind: string, from: number, to: number, y: number, height: number, title = ''): Html | false {
    const [start, end] = [Math.max(from, this.#span.from), Math.min(to, this.#span.to)]
    if (start > end) return false
    const width = Math.max(this.#x(end) - this.#x(start), 1).toFixed(1)
    return html`<rect class="${kind}" x="${this.#x(start)}" y="${y}" width="${width}" height="${height}">
      ${title && html`<title>${title}</title>`}</rect>`
  }

  #mark(kind: string, at: number, y: number, height: number, title: string): Html | false {
    if (at < this.#span.from || at > this.#span.to) return false
    return html`<path class="${kind}" d="M${this.#x(at)} ${y}v${height}"><title>${title}, ${seconds(at)}</title></path>`
  }
}
