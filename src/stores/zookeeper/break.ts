import type { BreakParameters } from '../../contract/store.ts'
import { Refused } from './failure.ts'
import type { Group } from './group.ts'
import { heldBy } from './inspection.ts'
import type { Paths } from './paths.ts'
import { code, deleteStep, multi, setDataStep } from './protocol.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

/** Deletes the node that holds. The id of that transaction is the token that outranks it, and is stored with the name. */
export async function breakLease(
  group: Group,
  paths: Paths,
  name: string,
  { by, token: of, signal }: BreakParameters & { readonly signal: AbortSignal },
): Promise<bigint | undefined> {
  const mark = setDataStep(paths.name(name), JSON.stringify([1, by]))
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const connection = await group.connection(0)
    const { holder } = await group.queues.lookAtNewest(connection, name)
    if (!holder) return undefined
    const held = of === undefined ? undefined : await heldBy(group, connection, paths, name, holder)
    if (held && held.token !== of) return undefined
    if (of !== undefined && !held) continue // it is gone by now
    signal.throwIfAborted() // a `break` that was given up must not end a later lease
    const done = await group.send(connection, multi([deleteStep(paths.node(name, holder.name)), mark]))
    const token = done.at(-1)?.stat?.mzxid
    if (token !== undefined) return token
    const failed = done.find(({ error }) => error !== 0) // the steps after it have other errors
    if (failed && failed.error !== code.noNode) throw new Refused(failed.error)
  }
  throw tooManyChanges(name)
}
