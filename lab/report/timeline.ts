import { type Acquisition, NEVER } from '../judge/acquisition.ts'
import { seconds } from '../judge/format.ts'
import { overlapsOf } from '../judge/overlap.ts'
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
    const { run, faults, acquisitions, end } = this.#trace
    const { from, to } = this.#span
    const [width, height] = [this.#x(to), HEAD + run.names.length * this.#section]
    const isShown = (start: number, over: number): boolean => over >= from && start <= to
    const rows = run.names.flatMap(name => this.#clients.map(client => this.#top(name, client) + ROW))
    const ticks = Array.from({ length: Math.floor(width / TICK) + 1 }, (_, index) => index * TICK)
    const drawn = [...acquisitions.values()].filter(({ asked, settled, over }) =>
      isShown(asked, Math.min(over === NEVER ? settled : over, end)),
    )
    const labels = run.names.map(
      name => html`<div style="height:${HEAD}px"><b>${name}</b></div>
        ${this.#clients.map(client => html`<div style="height:${ROW}px">client ${client}</div>`)}`,
    )
    return html`<div class="timeline"><div class="labels"><div style="height:${HEAD}px"></div>${labels}</div>
      <div class="plot"><svg width="${width}" height="${height}" role="img" aria-label="Clients by name over time">
      ${ticks.map(x => html`<text x="${x}" y="16">${seconds(from + x / this.#scale)}</text>`)}
      ${rows.map(y => html`<path class="row" d="M0 ${y}H${width}"/>`)}
      ${faults.filter(({ at, until }) => isShown(at, until)).map(fault => this.#fault(fault, height))}
      ${drawn.map(each => this.#acquisition(each))}
      ${overlapsOf(this.#trace)
        .filter(overlap => isShown(overlap.from, overlap.until))
        .map(({ older, newer, from, until, excuse, effect }) =>
          this.#bar(
            'overlap',
            [from, until],
            [this.#top(older.name, older.client) + 2, ROW - 4],
            [
              `client ${older.client} still acted as holder after the grant of client ${newer.client}`,
              `${excuse ? `excused by ${excuse}` : 'not excused'}, ${effect}`,
            ],
          ),
        )}
      ${violations
        .filter(({ at }) => isShown(at, at))
        .map(
          ({ at, name, what }) => html`<path class="violation" d="M${this.#x(at)} ${HEAD}V${height}">
          <title>${seconds(at)} ${name}: ${what}</title></path>`,
        )}
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

  #fault(fault: Trace['faults'][number], height: number): Html {
    const { at, until, what, target } = fault
    const client = struck(fault)
    const title = [`${what} (${target}), ${seconds(at)} to ${seconds(until)}`]
    if (client === undefined) return this.#bar('fault', [at, until], [HEAD, height - HEAD], title)
    const tops = this.#trace.run.names.map(name => this.#top(name, client))
    return html`${tops.map(top => this.#bar('fault', [at, until], [top, ROW], title))}`
  }

  #acquisition(each: Acquisition): Html {
    const { asked, settled, granted, lost, died, over, client, token, name, writes, believedUntil } = each
    const { end } = this.#trace
    const top = this.#top(name, client)
    const waiting = this.#bar('wait', [asked, Math.min(settled, end)], [top + ROW / 2 - 1, 2])
    if (granted === NEVER) return waiting
    const until = Math.min(believedUntil, end)
    const refused = writes.filter(({ decision }) => decision?.kind === 'rejected')
    return html`${waiting}${this.#bar(
      'hold',
      [granted, until],
      [top + 4, ROW - 8],
      [`client ${client} held ${name} with token ${token}, ${seconds(granted)} to ${seconds(until)}`],
    )}
      ${refused.map(({ decision, token }) => this.#mark('refused', decision?.at ?? 0, top, 0, `a write with token ${token} was refused`))}
      ${lost === over && lost !== NEVER && this.#mark('lost', lost, top, ROW - 8, `client ${client} is notified that it lost ${name}`)}
      ${died === over && died !== NEVER && this.#mark('died', died, top, ROW - 8, `client ${client} died`)}`
  }

  #bar(
    kind: string,
    [from, to]: readonly [number, number],
    [y, height]: readonly [number, number],
    title: string[] = [],
  ): Html {
    const width = Math.max(this.#x(to) - this.#x(from), 1).toFixed(1)
    return html`<rect class="${kind}" x="${this.#x(from)}" y="${y}" width="${width}" height="${height}">
      ${title.length > 0 && html`<title>${title.join(': ')}</title>`}</rect>`
  }

  #mark(kind: string, at: number, top: number, height: number, what: string): Html {
    return html`<path class="${kind}" d="M${this.#x(at)} ${top + (ROW - height) / 2}v${height}"><title>${what}, ${seconds(at)}</title></path>`
  }
}
