import { gateName, isSlotOf, slotName, titleOf } from '../../contract/reserved.ts'
import type { LeaseRecord, Locks } from '../../index.ts'
import { seeHelp } from '../arguments.ts'
import { EXIT, Usage } from '../failure.ts'
import { isMarker, markerOf } from '../run-marker.ts'
import { partsOf } from './by-slot.ts'
import { query } from './query.ts'

const flag = { type: 'boolean' } as const
const text = { type: 'string' } as const
const OPTIONS = { slot: text, token: text, gate: flag, all: flag, marker: flag } as const

/** `holdfast break`: takes a lease from its holder. Returns 1 if the name was free, 75 if another token holds it. */
export function breakLease(args: readonly string[]): Promise<number> {
  const answer: Parameters<typeof query>[3] = async ({ argument, locks, output, values }) => {
    const token = tokenOf(values)
    const names = await namesToBreak(argument, values, locks)
    const what = names.length === 1 ? (names[0] ?? '') : argument
    const wasMarker = await isMarker(locks, what)
    const broken: Broken[] = []
    const report = (holder?: LeaseRecord): void => {
      const leases = values.all ? { leases: broken } : {}
      const result = { name: what, broken: broken.length > 0, token: broken.at(-1)?.token, holder, ...leases }
      output.print(result, holder ? keptBy(holder, token) : textOf(what, broken, wasMarker))
    }
    try {
      for (const name of names) {
        const higher = await locks.break(name, { token })
        if (higher !== undefined) broken.push({ name, token: higher })
      }
    } catch (error) {
      if (broken.length > 0) report()
      throw error
    }
    const { holder } = token !== undefined && broken.length === 0 ? await locks.inspect(what) : {}
    report(holder)
    if (broken.length > 0) return 0
    return holder ? EXIT.busy : EXIT.free
  }
  return query('break', 'NAME', args, answer, OPTIONS)
}

interface Broken {
  readonly name: string
  readonly token: bigint
}

function textOf(what: string, broken: readonly Broken[], wasMarker: boolean): string {
  if (broken.length === 0) return `${titleOf(what)} was free`
  if (wasMarker) return `${titleOf(what)} is removed: the next run with --skip-if-ran-since is not skipped`
  const lines = broken.map(
    ({ name, token }) => `${titleOf(name)} is free. Token ${token} is higher than that of its old holder.`,
  )
  return [
    ...lines,
    'The old holder is notified at its next renewal and may work until then. A resource that checks tokens refuses it ' +
      'once it has seen a higher token.',
  ].join('\n')
}

/** Another lease than the one that was meant. */
function keptBy({ name, owner, token }: LeaseRecord, meant: bigint | undefined): string {
  return `${titleOf(name)} was not broken: token ${meant} no longer holds it. ${owner} holds it now, with token ${token}`
}

function tokenOf({ token, all }: Readonly<Record<string, unknown>>): bigint | undefined {
  if (typeof token !== 'string') return undefined
  if (all) throw new Usage('--token is of one lease, so it excludes --all')
  if (/^\d{1,20}$/.test(token)) return BigInt(token)
  throw new Usage(`--token ${token} is not a token: expected a number, as holdfast inspect shows it`)
}

/** The leases that are meant. Of a name with slots, the caller must say which. */
async function namesToBreak(
  name: string,
  { slot, gate, all, marker }: Readonly<Record<string, unknown>>,
  locks: Locks,
): Promise<string[]> {
  if ([slot, gate, all, marker].filter(each => each !== undefined).length > 1)
    throw new Usage('--slot, --gate, --all and --marker exclude each other')
  if (gate) return [gateName(name)]
  if (marker) return [markerOf(name)]
  if (typeof slot === 'string') {
    if (/^\d{1,2}$/.test(slot) && Number(slot) <= 16) return [slotName(name, Number(slot))]
    throw new Usage(`--slot ${slot} is not a slot: expected a number from 0 to 16`)
  }
  const records = await partsOf(locks, name)
  const parts = [...new Set(records.map(record => record.name))].filter(part => isSlotOf(part, name))
  if (all) return [name, ...parts]
  if (parts.length > 0)
    throw new Usage(`${name} is shared by several holders: add --slot N or --all; ${seeHelp('break')}`)
  return [name]
}
