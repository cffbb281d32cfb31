import type { Claim } from '../../contract/store.ts'
import { isRefused } from './failure.ts'
import type { Group } from './group.ts'
import { leaseOf } from './looking.ts'
import type { Paths } from './paths.ts'
import { code, setData } from './protocol.ts'
import { dataOf } from './record.ts'
import { MOST_TRIES, restless } from './tries.ts'

/** Writes the note of the claim that holds; false if it holds no more. `group`: one whose session keeps no lease alive. */
export async function annotate(group: Group, paths: Paths, claim: Claim, signal: AbortSignal): Promise<boolean> {
  const { name, note } = claim
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const connection = await group.connection(0)
    const held = await leaseOf(group, connection, paths, claim)
    if (!held) return false
    signal.throwIfAborted()
    try {
      // A late copy of this would undo a later note, which it sees by the version.
      const change = setData(paths.node(name, held.node.name), dataOf({ ...held, note }), held.version)
      await group.send(connection, change)
      return true
    } catch (error) {
      if (!isRefused(error, code.noNode, code.badVersion)) throw error
    }
  }
  throw restless(name)
}
