import type { BreakParameters } from '../../contract/store.ts'
import { Refused } from './failure.ts'
import type { Group } from './group.ts'
import { heldBy } from './inspection.ts'
import type { Paths } from './paths.ts'
import { code, deleteStep, multi, setDataStep } from './protocol.ts'
import { nameDataOf } from './record.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

/**
 * Deletes the nodes of all holders, or of one of them. The id of that transaction is a token that outranks theirs. It fails
 * if a claim was granted meanwhile, because that claim has a lower token.
 */
export async function breakLease(
  group: Group,
  paths: Paths,
  name: string,
  { by, token, slot, signal }: BreakParameters & { readonly signal: AbortSignal },
): Promise<bigint | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const connection = await group.connection(0)
    const { holders, parent } = await group.queues.lookAtNewest(connection, name)
    const having = holders.filter(({ slots }) => slot === undefined || slots.includes(slot))
    let ended = having
    if (token !== undefined) {
      const held = await Promise.all(having.map(node => heldBy(group, connection, paths, name, node)))
      ended = having.filter((_, index) => held[index]?.token === token)
      if (ended.length === 0 && held.includes(undefined)) continue // it may have another node now
    }
    if (ended.length === 0) return undefined
    signal.throwIfAborted() // a cancelled `break` must not end a later lease
    const steps = ended.map(node => deleteStep(paths.node(name, node.name)))
    steps.push(setDataStep(paths.name(name), nameDataOf(parent.passed, by), parent.version))
    const done = await group.send(connection, multi(steps))
    const broken = done.at(-1)?.stat?.mzxid
    if (broken !== undefined) return broken
    const failed = done.find(({ error }) => error !== 0) // the steps after it report other errors
    if (failed && failed.error !== code.noNode && failed.error !== code.badVersion) throw new Refused(failed.error)
  }
  throw tooManyChanges(name)
}
