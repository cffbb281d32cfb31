import { isShared, slotsText } from '../../contract/record.ts'
import { isMarker, markerOf, titleOf } from '../../contract/reserved.ts'
import { LARGEST_LIMIT } from '../../contract/store.ts'
import type { LeaseRecord, Locks } from '../../index.ts'
import { seeHelp } from '../arguments.ts'
import { counted } from '../counted.ts'
import { EXIT, Usage } from '../failure.ts'
import { query } from './query.ts'

const flag = { type: 'boolean' } as const
const text = { type: 'string' } as const
const OPTIONS = { slot: text, token: text, all: flag, marker: flag } as const

/** `holdfast break`: takes a lease from its holder. Returns 1 if the name was free, 75 if another token holds it. */
export function breakLease(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async ({ argument, locks, output, values }) => {
    const token = tokenOf(values)
    const slot = slotOf(values)
    const name = values.marker ? markerOf(argument) : argument
    const isOne = slot !== undefined || token !== undefined
    const only = isOne ? slot : await slotFor(values.all === true, locks, name)
    const higher = await locks.break(name, { slot: only, token })
    const broken = higher !== undefined
    const state = broken || token === undefined ? { holders: [] } : await locks.inspect(name)
    const holders = state.holders.filter(({ slots = [0] }) => slot === undefined || slots.includes(slot))
    const part = isMarker(name) ? 'the marker of ' : slot === undefined ? '' : `slot ${slot} of `
    const title = part + titleOf(name)
    const told = broken ? brokenText(title, higher, isMarker(name)) : keptText(name, title, token, holders)
    output.print({ name, broken, token: higher, holders }, told)
    if (broken) return 0
    return holders.length > 0 ? EXIT.busy : EXIT.free
  }
  return query('break', 'NAME', args, answer, OPTIONS)
}

/** All slots of a shared name if all are meant, else the slot of a name that is not shared. Throws `Usage` otherwise. */
async function slotFor(isAll: boolean, locks: Locks, name: string): Promise<number | undefined> {
  const { holders } = await locks.inspect(name)
  if (isAll && holders.length > 0 && !isShared(holders))
    throw new Usage(`${titleOf(name)} is not shared: leave out --all; ${seeHelp('break')}`)
  if (isAll) return undefined
  if (!isShared(holders)) return 0 // if others begin to share it meanwhile, at most one of them is ended
  const slots = holders.flatMap(holder => holder.slots ?? [0]).sort((a, b) => a - b)
  throw new Usage(
    `${titleOf(name)} is shared, and held in ${slotsText(slots)}: add --slot N or --all; ${seeHelp('break')}`,
  )
}

function brokenText(title: string, token: bigint, wasMarker: boolean): string {
  if (wasMarker) return `${title} is removed: the next run is not skipped`
  return (
    `${title} is free. Token ${token} is higher than that of its old holder.\n` +
    'The old holder is notified at its next renewal and may work until then. A resource that checks tokens refuses it ' +
    'once it has seen a higher token.'
  )
}

/** The text if another lease than the intended one holds the name, or none does. */
function keptText(name: string, title: string, meant: bigint | undefined, holders: readonly LeaseRecord[]): string {
  const [holder, ...others] = holders
  if (!holder) return isMarker(name) ? `${titleOf(name)} has no marker of a run` : `${title} was free`
  const more = others.length > 0 ? `, and ${counted(others.length, 'other holds', 'others hold')} it too` : ''
  return `${title} was not broken: token ${meant} no longer holds it. ${holder.owner} holds it now, with token ${holder.token}${more}`
}

function tokenOf({ token, all }: Readonly<Record<string, unknown>>): bigint | undefined {
  if (typeof token !== 'string') return undefined
  if (all) throw new Usage('--token is of one lease, so it excludes --all')
  if (/^\d{1,20}$/.test(token)) return BigInt(token)
  throw new Usage(`--token ${token} is not a token: expected a number, as holdfast inspect shows it`)
}

function slotOf({ slot, all, marker }: Readonly<Record<string, unknown>>): number | undefined {
  if ([slot, all, marker].filter(each => each !== undefined).length > 1)
    throw new Usage('--slot, --all and --marker exclude each other')
  if (typeof slot !== 'string') return undefined
  if (/^\d{1,10}$/.test(slot) && Number(slot) < LARGEST_LIMIT) return Number(slot)
  throw new Usage(`--slot ${slot} is not a slot: expected a number from 0, as holdfast inspect shows it`)
}
