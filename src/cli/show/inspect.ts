import { isShared, slotsText, useOf, wantOf } from '../../contract/record.ts'
import type { LeaseRecord } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { paint, printable } from '../output.ts'
import { query } from './query.ts'

/** `holdfast inspect`: shows one name, with all of its holders and waiters. Returns 1 if nobody holds it. */
export function inspect(args: readonly string[]): Promise<number> {
  return query('inspect', 'NAME', args, async ({ argument, locks, output }) => {
    const state = await locks.inspect(argument)
    const { name, holders, waiters, nodes = [] } = state
    const [holder] = holders
    const facts = isShared(holders) ? holders.map(slotFact) : holder ? factsOf(holder) : []
    const all: [string, string][] = [
      ...facts,
      ...waiters.map((waiter, i): [string, string] => {
        const want = wantOf(waiter, [...holders, ...waiters])
        return [`waiting ${i + 1}`, `${waiter.owner}${want && `, ${want}`}${waiter.note && `  ${waiter.note}`}`]
      }),
      ...nodes.map((node): [string, string] => [
        'node',
        `${node.name} ${node.state}${node.reason ? `: ${node.reason}` : ''}`,
      ]),
    ]
    const width = Math.max(9, ...all.slice(0, 100).map(([fact]) => fact.length))
    const lines = all.map(([fact, value]) => printable(`  ${fact.padEnd(width)}  ${value}`))
    const what = isShared(holders) ? `, held: ${useOf(holders)}` : holder ? '' : ' is free'
    output.print(state, [`${paint('bold', name)}${what}`, ...lines].join('\n'))
    return holder ? 0 : EXIT.free
  })
}

function factsOf({ owner, token, remaining, note }: LeaseRecord): [string, string][] {
  return [
    ['held by', owner],
    ['token', `${token}`],
    ['remaining', `${formatDuration(remaining)}, unless renewed`],
    ...(note ? [['note', note] as [string, string]] : []),
  ]
}

/** One of the holders of a shared name. */
function slotFact({ slots, owner, token, remaining, note }: LeaseRecord): [string, string] {
  const value = `${owner}, ${formatDuration(remaining)} unless renewed, token ${token}`
  return [slotsText(slots), `${value}${note && `  ${note}`}`]
}
