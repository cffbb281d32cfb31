import type { Claim } from '../../contract/store.ts'
import { isRefused } from './failure.ts'
import type { Group } from './group.ts'
import { leaseOf } from './inspection.ts'
import type { Paths } from './paths.ts'
import { code, setData } from './protocol.ts'
import { dataOf } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

/**
 * Writes the note of the claim. Resolves to false if the claim no longer holds. `group`: a group whose session keeps no
 * lease alive.
 */
export async function annotate(group: Group, paths: Paths, claim: Claim, signal: AbortSignal): Promise<boolean> {
  const { name, note } = claim
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const connection = await group.connection(0)
    const held = await leaseOf(group, connection, paths, claim)
    if (!held) return false
    signal.throwIfAborted()
    try {
      // A stale request must not undo a later note, so it compares the version.
      const change = setData(paths.node(name, held.node.name), dataOf({ ...held, note }), held.version)
      await group.send(connection, change)
      return true
    } catch (error) {
      if (!isRefused(error, code.noNode, code.badVersion)) throw error
    }
  }
  throw tooManyChanges(name)
}
