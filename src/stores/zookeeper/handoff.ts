import type { Connection } from './connection.ts'
import type { Group } from './group.ts'
import type { Paths } from './paths.ts'
import type { Place } from './place.ts'

/**
 * Ends the lease of a claim, and grants the name to the next waiter in the same transaction. Only if that belongs to the
 * same session, and so to this process. False: it did neither.
 */
export async function handOver(
  group: Group,
  paths: Paths,
  connection: Connection,
  from: Place,
  at: number,
): Promise<boolean> {
  if (!from.node || from.token === undefined) return false
  const path = paths.node(from.name, from.node.name)
  const next = group.directlyBehind(path)
  const signal = next?.watch
  if (!next?.node || !next.claim.handoff || !signal || signal.aborted) return false
  group.watches.remove(path, next.id) // it is woken by the outcome
  try {
    const asked = { claim: next.claim, signal, at }
    const taken = await group.take(connection, asked, {
      from: next.node,
      ahead: [from.node],
      kind: 'h',
      held: undefined,
    })
    if (taken) taken.handedAt = at
    return taken !== undefined
  } finally {
    group.watches.wake(next.id, 0)
  }
}
