import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Copies } from '../copies.ts'
import { BUILD, Build } from '../holdfast.ts'
import type { Client } from '../peer.ts'
import { rough, type Scenario } from '../scenario.ts'
import { median } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

/** Milliseconds. */
const TURN = 10
const TTL = 10_000

export const SILENT = 'no subscribers'
export const METERED = 'holdfast/prometheus subscribes'

export const scenario: Scenario = {
  title: 'Cost of events with subscribers',
  about:
    'One process loads the library twice: as it is, and with all event code removed. One loop acquires and releases a name ' +
    'with each, in turns of 10 ms: with, without, without, with. The cost is the extra CPU of the thread per pair: the ' +
    'median over all groups of four turns, with its 95 % confidence interval. The control loads the copy without events ' +
    'twice.',
  rounds: 3,
  variants: isQuick => {
    const settings = { fours: isQuick ? 40 : 300 }
    const takesPart = (name: string): boolean => name === 'holdfast'
    const metered = { name: METERED, settings: { ...settings, events: 1, metrics: 1 }, takesPart }
    if (isQuick) return [metered]
    return [{ name: 'control', settings, takesPart }, { name: SILENT, settings: { ...settings, events: 1 } }, metered]
  },
  takesPart: peer => peer.can.includes('copies'),
  measure: trial => trial.start('work').values,
  columns: [
    { title: 'CPU us/pair without', value: 'without', format: rough },
    { title: 'with', value: 'with', format: rough },
    { title: 'cost %', value: 'cost', format: rough },
    { title: 'at least', value: 'least', format: rough },
    { title: 'at most', value: 'most', format: rough },
  ],
}

export async function work({ peer, place, settings }: Stage): Promise<Values> {
  const { fours = 1, events, metrics } = settings
  const copies = new Copies()
  const clients: Client[] = []
  for (const copy of ['?silent', events ? '' : '?silent=2']) {
    const folder = join(place.folder, String(clients.length))
    mkdirSync(folder)
    clients.push(await peer.open({ ...place, folder }, copy))
  }
  copies.assertSilenced()
  if (metrics) (await new Build(BUILD).prometheus()).leaseMetrics()
  const [without, having] = clients as [Client, Client]
  const [plain, heard, costs]: [number[], number[], number[]] = [[], [], []]
  for (let four = -fours / 4; four < fours; four += 1) {
    const turns: number[] = []
    for (const client of [having, without, without, having]) turns.push(await turn(client))
    if (four < 0) continue // code is compiled meanwhile
    const [first = 0, second = 0, third = 0, fourth = 0] = turns
    heard.push(first, fourth)
    plain.push(second, third)
    costs.push(((first + fourth) / (second + third) - 1) * 100)
  }
  for (const client of clients) await client.close()
  return { without: median(plain), with: median(heard), cost: median(costs), ...bounds(costs) }
}

/** Microseconds of CPU that a pair took. */
async function turn(client: Client): Promise<number> {
  await new Promise(setImmediate) // what never leaves the thread would else let no timer run
  const before = process.threadCpuUsage()
  const end = performance.now() + TURN
  let pairs = 0
  for (; performance.now() < end; pairs += 1) await (await client.acquire('observers', TTL))()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / pairs
}

/** Between what the median of what these are a sample of lies in 95 of 100 cases, whatever its distribution. */
function bounds(sample: readonly number[]): { least: number | undefined; most: number | undefined } {
  const sorted = sample.toSorted((a, b) => a - b)
  const rank = Math.max(Math.floor(sorted.length / 2 - 0.98 * Math.sqrt(sorted.length)), 0)
  return { least: sorted[rank], most: sorted.at(-1 - rank) }
}
