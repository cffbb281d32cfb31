import { formatDuration } from '../duration.ts'
import { EXIT } from '../failure.ts'
import { paint, printable } from '../output.ts'
import { query } from './query.ts'

/** `holdfast inspect`: shows one name. Returns 1 if it is free. */
export function inspect(args: readonly string[]): Promise<number> {
  return query('inspect', 'NAME', args, async ({ argument, locks, output }) => {
    const state = await locks.inspect(argument)
    const { name, holder, waiters, nodes = [] } = state
    const facts: [string, string][] = holder
      ? [
          ['held by', holder.owner],
          ['token', `${holder.token}`],
          ['remaining', `${formatDuration(holder.remaining)}, unless renewed`],
          ...(holder.note ? [['note', holder.note] as [string, string]] : []),
        ]
      : []
    const lines = [
      `${paint('bold', name)}${holder ? '' : ' is free'}`,
      ...[
        ...facts.map(([fact, value]) => `  ${fact.padEnd(9)}  ${value}`),
        ...waiters.map(
          (waiter, i) => `  ${`waiting ${i + 1}`.padEnd(9)}  ${waiter.owner}${waiter.note && `  ${waiter.note}`}`,
        ),
        ...nodes.map(node => `  node       ${node.name} ${node.state}${node.reason ? `: ${node.reason}` : ''}`),
      ].map(printable),
    ]
    output.print(state, lines.join('\n'))
    return holder ? 0 : EXIT.free
  })
}
