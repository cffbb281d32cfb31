import type { Connection } from './connection.ts'
import { Refused } from './failure.ts'
import type { Group } from './group.ts'
import type { Place, Settings } from './place.ts'

/**
 * Ends the lease of a claim, and grants the name to the next waiter in the same transaction. Only if that belongs to the
 * same session, and so to this process. False: it did neither. Rejects if that is unknown.
 */
export async function handOver(
  group: Group,
  { paths, clock }: Settings,
  connection: Connection,
  from: Place,
): Promise<boolean> {
  if (!from.node || from.token === undefined) return false
  const path = paths.node(from.name, from.node.name)
  const next = group.directlyBehind(path)
  const signal = next?.watch
  if (!next?.node || !next.claim.handoff || !signal || signal.aborted || next.isLeaving) return false
  group.watches.remove(path, next.id) // it is woken by the outcome
  try {
    const asked = { claim: next.claim, signal, at: clock.now() }
    const taken = await group.take(connection, asked, {
      from: next.node,
      ahead: [from.node],
      kind: 'h',
      held: undefined,
    })
    if (taken) taken.handedAt = clock.now()
    return taken !== undefined
  } catch (error) {
    if (error instanceof Refused) return false // the server may still allow to delete
    throw error
  } finally {
    group.watches.wake(next.id, 0)
  }
}
