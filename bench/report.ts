import type { Over } from './peer.ts'
import type { Column, Scenario } from './scenario.ts'
import { median } from './statistics.ts'
import type { Values } from './worker.ts'

/** What one peer gave in one round. */
export interface Measured {
  readonly scenario: string
  readonly variant: string
  readonly peer: string
  readonly round: number
  /** The key of its run in `Results.runs`. */
  readonly run: string
  readonly values: Values
}

/** What ran, when, and on what. */
export interface Run {
  readonly date: string
  readonly commit: string
  readonly cpu: string
  readonly cores: number
  readonly system: string
  readonly node: string
  readonly redis: string
  readonly ioredis: string
  /** Of the machine, before the run. */
  readonly load: string
}

/** Of one run, or of several with `--keep`. */
export interface Results {
  readonly runs: Readonly<Record<string, Run>>
  readonly isQuick: boolean
  /** By name of the adapter. */
  readonly labels: Readonly<Record<string, string>>
  /** What each keeps leases in. */
  readonly overs: Readonly<Record<string, Over>>
  /** Of each peer that is measured against one, its floor. */
  readonly floors: Readonly<Record<string, string>>
  readonly measured: readonly Measured[]
}

export interface Summary {
  readonly middle: number
  readonly least: number
  readonly most: number
  /** The number of rounds in which it is known. */
  readonly of: number
}

/** The median and the range of one value over the rounds; `undefined` if it is unknown in most of them. */
export function summary(values: readonly (number | undefined)[]): Summary | undefined {
  const known = values.filter(value => value !== undefined).filter(value => !Number.isNaN(value))
  if (known.length * 2 <= values.length) return undefined
  return { middle: median(known), least: Math.min(...known), most: Math.max(...known), of: known.length }
}

/** `Math.max` or `Math.min`. */
export type Better = (...values: number[]) => number

export class Report {
  readonly results: Results

  constructor(results: Results) {
    this.results = results
  }

  /** Of one peer, by round. */
  values(scenario: string, variant: string, peer: string, value: string): (number | undefined)[] {
    return this.#of(scenario, variant, peer).map(({ values }) => one(values[value]))
  }

  /**
   * The same in relation to another peer, in each round on its own. Unless they took turns, the trials of a round are
   * minutes apart.
   */
  ratios(scenario: string, variant: string, peer: string, other: string, value: string): (number | undefined)[] {
    const others = this.#of(scenario, variant, other)
    return this.#of(scenario, variant, peer).map(({ round, values }) => {
      const base = one(others.find(measured => measured.round === round)?.values[value])
      const own = one(values[value])
      return own === undefined || base === undefined ? undefined : own / base
    })
  }

  peers(scenario: string, variant: string): string[] {
    const measured = this.results.measured.filter(each => each.scenario === scenario && each.variant === variant)
    return [...new Set(measured.map(({ peer }) => peer))]
  }

  /** The other library over the same kind of servers to which `own` has the least favourable ratio. */
  bestPeer(scenario: string, variant: string, own: string, value: string, better: Better): string | undefined {
    const { floors, overs } = this.results
    const ratios = new Map<string, number>()
    for (const peer of this.peers(scenario, variant)) {
      if (overs[peer] !== overs[own] || floors[peer] === peer || /^(holdfast|baseline|floor)/.test(peer)) continue
      const found = summary(this.ratios(scenario, variant, own, peer, value))
      if (found) ratios.set(peer, found.middle)
    }
    const worst = (better === Math.max ? Math.min : Math.max)(...ratios.values())
    for (const [peer, ratio] of ratios) if (ratio === worst) return peer
    return undefined
  }

  variants(scenario: string): string[] {
    return [...new Set(this.results.measured.filter(each => each.scenario === scenario).map(({ variant }) => variant))]
  }

  /** One section for one scenario, a table for each of its variants. */
  markdown(name: string, scenario: Scenario): string {
    const tables = this.variants(name).map(variant => {
      const heading = variant ? `**${variant}**\n\n` : ''
      return heading + this.#table(name, variant, scenario.columns)
    })
    return `### ${scenario.title}\n\n${scenario.about}\n\n${this.#measured(name)}\n\n${tables.join('\n\n')}\n`
  }

  #measured(scenario: string): string {
    const { runs, measured } = this.results
    const keys = new Set(measured.filter(each => each.scenario === scenario).map(({ run }) => run))
    const runsOfIt = Array.from(keys, key => {
      const { date, commit, cpu, cores, node, redis, ioredis } = runs[key] as Run
      return `on ${date} at commit ${commit}: ${cpu}, ${cores} cores, Node ${node}, Redis ${redis} on the same machine, ioredis ${ioredis}`
    })
    return `Measured ${runsOfIt.join('; and ')}.`
  }

  #of(scenario: string, variant: string, peer: string): Measured[] {
    return this.results.measured.filter(
      measured => measured.scenario === scenario && measured.variant === variant && measured.peer === peer,
    )
  }

  #table(scenario: string, variant: string, columns: readonly Column[]): string {
    const peers = this.peers(scenario, variant)
    const shown = columns.filter(({ value }) =>
      peers.some(peer => summary(this.values(scenario, variant, peer, value)) !== undefined),
    )
    const head = ['', ...shown.flatMap(({ title, isRatio }) => (isRatio ? [title, 'to the floor'] : [title]))]
    const rows = peers.map(peer => {
      const cells = shown.flatMap(column => {
        const cell = this.#cell(this.values(scenario, variant, peer, column.value), column)
        return column.isRatio ? [cell, this.#ratio(scenario, variant, peer, column.value)] : [cell]
      })
      const label = this.results.labels[peer] ?? peer
      return [isOwn(peer) ? `**${label}**` : label, ...cells]
    })
    return [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...rows]
      .map(cells => `| ${cells.join(' | ')} |`)
      .join('\n')
  }

  #cell(values: readonly (number | undefined)[], { format, none = '–' }: Column): string {
    const found = summary(values)
    if (!found) return none
    const [middle, least, most] = [format(found.middle), format(found.least), format(found.most)]
    const range = least === most ? '' : ` (${least}–${most})`
    return middle + range + (found.of < values.length ? ` in ${found.of} of ${values.length} rounds` : '')
  }

  #ratio(scenario: string, variant: string, peer: string, value: string): string {
    const floor = this.results.floors[peer]
    if (floor === undefined) return '–'
    if (floor === peer) return '1'
    const found = summary(this.ratios(scenario, variant, peer, floor, value))
    return found ? `${found.middle.toFixed(2)} (${found.least.toFixed(2)}–${found.most.toFixed(2)})` : '–'
  }
}

/** What the tables are about. */
export function isOwn(peer: string): boolean {
  return peer === 'holdfast' || peer === 'holdfast-five'
}

function one(value: number | number[] | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}
