import { gateName, isSlotOf, partOf } from '../../contract/reserved.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { paint, printable } from '../output.ts'
import { bySlot, partsOf } from './by-slot.ts'
import { query } from './query.ts'

/** `holdfast inspect`: shows one name, with its slots and its gate if it is shared. Returns 1 if nothing of it is held. */
export function inspect(args: readonly string[]): Promise<number> {
  return query('inspect', 'NAME', args, async ({ argument, locks, output }) => {
    const state = await locks.inspect(argument)
    const parts = await partsOf(locks, argument)
    const slots = bySlot(parts.filter(part => part.name === gateName(argument) || isSlotOf(part.name, argument)))
    const { name, holder, waiters, nodes = [] } = state
    const facts: [string, string][] = holder
      ? [
          [slots.length > 0 ? 'slot 0' : 'held by', holder.owner],
          ['token', `${holder.token}`],
          ['remaining', `${formatDuration(holder.remaining)}, unless renewed`],
          ...(holder.note ? [['note', holder.note] as [string, string]] : []),
        ]
      : []
    const lines = [
      `${paint('bold', name)}${holder || slots.length > 0 ? '' : ' is free'}`,
      ...[
        ...facts.map(([fact, value]) => `  ${fact.padEnd(9)}  ${value}`),
        ...waiters.map(
          (waiter, i) => `  ${`waiting ${i + 1}`.padEnd(9)}  ${waiter.owner}${waiter.note && `  ${waiter.note}`}`,
        ),
        ...slots.map(partLine),
        ...nodes.map(node => `  node       ${node.name} ${node.state}${node.reason ? `: ${node.reason}` : ''}`),
      ].map(printable),
    ]
    output.print(slots.length > 0 ? { ...state, slots } : state, lines.join('\n'))
    return holder || slots.length > 0 ? 0 : EXIT.free
  })
}

/** Of a slot of the name, or of the gate that calls pass. */
function partLine({ name, state, owner, remaining, position = 0 }: LeaseRecord): string {
  const title = partOf(name).part.padEnd(9)
  if (state === 'waiting') return `  ${title}  waiting ${position + 1}: ${owner}`
  return `  ${title}  ${owner}, ${formatDuration(remaining)} unless renewed`
}
