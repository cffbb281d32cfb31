import type { RedisServer } from '../lab/servers/redis.ts'
import type { Worker } from './launch.ts'
import type { Over, Peer, Place } from './peer.ts'
import type { Settings, Values } from './worker.ts'

/** One kind of measurement. A module in `scenarios/` exports one as `scenario`, and the tasks of its workers. */
export interface Scenario {
  readonly title: string
  /** What is done and how it is counted, for the reader of the table. */
  readonly about: string
  readonly rounds: number
  /** Servers of Redis that are started for each trial; with several it is for peers over `redlock` alone. @default 1 */
  readonly servers?: number
  /** Measures all peers at once: where it is mostly waiting. */
  readonly isSideBySide?: boolean
  /** Measured one after the other for each peer; their names head the tables. */
  variants(isQuick: boolean): readonly Variant[]
  takesPart(peer: Peer): boolean
  /** Or `measureInTurns`. */
  measure?(trial: Trial): Promise<Values>
  /** All trials over one kind of server at once. Their figures can be compared even if the machine's speed varies. */
  measureInTurns?(trials: readonly Trial[]): Promise<PromiseSettledResult<Values>[]>
  readonly columns: readonly Column[]
}

export interface Variant {
  readonly name: string
  readonly settings: Settings
  readonly takesPart?: (name: string, peer: Peer) => boolean
}

export interface Column {
  readonly title: string
  /** Of the values that were measured. */
  readonly value: string
  /** Also as a ratio to the floor of the same round. */
  readonly isRatio?: boolean
  format(value: number): string
  /** In place of an unknown value. @default '–' */
  readonly none?: string
}

/** One measurement of one peer in one round. */
export interface Trial {
  readonly name: string
  readonly peer: Peer
  readonly place: Place
  readonly settings: Settings
  /** Where the peer keeps leases in Redis. */
  readonly servers: readonly [RedisServer, ...RedisServer[]]
  /** A process that carries out a task of the scenario's module; it is ended with the trial. */
  start(task: string, place?: Place): Worker
  /** Whatever else ends with the trial. */
  use<Resource extends AsyncDisposable>(resource: Resource): Resource
}

export const isRedis = (over: Over | undefined): boolean => over === 'redis' || over === 'redlock'

/** Milliseconds of CPU that the servers have used, all together. */
export async function serverCpu({ peer, servers }: Trial): Promise<number> {
  if (!isRedis(peer.over)) return Number.NaN
  const used = servers.map(async server => {
    const { used_cpu_user, used_cpu_sys } = await server.info('cpu')
    return (Number(used_cpu_user) + Number(used_cpu_sys)) * 1_000
  })
  return (await Promise.all(used)).reduce((sum, each) => sum + each, 0)
}

/** Milliseconds by a clock that all processes of the machine share. */
export const moment = (): number => Number(process.hrtime.bigint()) / 1e6

/** Milliseconds of CPU that this process has used, all its threads. */
export function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Nothing runs in this process for so many ms, as in a long computation, but it uses no CPU. */
export function block(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** A list of numbers among values. */
export const listOf = (values: Values, name: string): number[] => {
  const list = values[name]
  return Array.isArray(list) ? list : []
}

export const numberOf = (values: Values, name: string): number => Number(values[name] ?? Number.NaN)

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

export const whole = (value: number): string => grouped.format(value)

/** Three digits that count. */
export function rough(value: number): string {
  const size = Math.abs(value)
  return size >= 100 ? whole(value) : value.toFixed(size >= 10 ? 1 : 2)
}

/** Two and a half digits: what one run can tell. */
export function rounded(value: number): string {
  const unit = 10 ** Math.max(Math.floor(Math.log10(Math.abs(value) || 1)) - 2, 0)
  return whole(Math.round(value / unit) * unit)
}
