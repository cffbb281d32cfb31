import { isShared, slotsText, useOf, wantOf } from '../../contract/record.ts'
import { isMarker, LONGEST_TEXT, markerOf, titleOf } from '../../contract/reserved.ts'
import type { LeaseRecord, Locks } from '../../index.ts'
import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { paint, printable } from '../output.ts'
import { query } from './query.ts'
import { type Shown, shown } from './ran.ts'

/** `holdfast inspect`: shows one name, with all of its holders and waiters. Returns 1 if nobody holds it. */
export function inspect(args: readonly string[]): Promise<number> {
  return query('inspect', 'NAME', args, async ({ argument, locks, output }) => {
    const state = await locks.inspect(argument)
    const { name, holders, waiters, nodes = [] } = state
    const [holder] = holders
    const ran = await lastRun(locks, argument)
    const facts = isShared(holders) ? holders.map(slotFact) : holder ? factsOf(holder) : []
    const all: [string, string][] = [
      ...facts,
      ...(ran
        ? [['ran by', `${ran.owner}, not run again for ${formatDuration(ran.remaining)}`] as [string, string]]
        : []),
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
    output.print({ ...state, ran }, [`${paint('bold', titleOf(name))}${what}`, ...lines].join('\n'))
    return holder ? 0 : EXIT.free
  })
}

/** The marker of the last run that succeeded. */
async function lastRun(locks: Locks, name: string): Promise<Shown | undefined> {
  const marker = markerOf(name)
  if (isMarker(name) || Buffer.byteLength(marker) > LONGEST_TEXT) return undefined
  const [run] = (await locks.inspect(marker)).holders
  return run && shown(run)
}

function factsOf({ name, owner, token, remaining, note }: LeaseRecord): [string, string][] {
  return [
    [isMarker(name) ? 'ran by' : 'held by', owner],
    ['token', `${token}`],
    ['remaining', `${formatDuration(remaining)}${isMarker(name) ? '' : ', unless renewed'}`],
    ...(note ? [['note', note] as [string, string]] : []),
  ]
}

/** One of the holders of a shared name. */
function slotFact({ slots, owner, token, remaining, note }: LeaseRecord): [string, string] {
  const value = `${owner}, ${formatDuration(remaining)} unless renewed, token ${token}`
  return [slotsText(slots), `${value}${note && `  ${note}`}`]
}
