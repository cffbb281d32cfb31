import type { Event } from '../history.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/**
 * Mutual exclusion as the resource sees it: no accepted write has a lower token than one before, each is accepted once,
 * the resource keeps to its rule, and a writer is told what was decided.
 */
export function safety(trace: Trace): Violation[] {
  return [...trace.decisions].flatMap(([name, decisions]) => judge(trace, name, decisions))
}

function judge(
  { run, writers }: Trace,
  name: string,
  decisions: readonly Event<'accepted' | 'rejected'>[],
): Violation[] {
  const violations: Violation[] = []
  const accepted = new Set<number>()
  let newest: Event<'accepted' | 'rejected'> | undefined
  const opOf = (write: number | undefined): number[] => {
    const op = write === undefined ? undefined : writers.get(write)?.acquisition.op
    return op === undefined ? [] : [op]
  }
  for (const decision of decisions) {
    const { at, kind, write, token, mark } = decision
    const fail = (what: string, ops: readonly number[] = opOf(write)): void => {
      violations.push({ promise: 'safety', at, name, what, ops: [...new Set(ops)] })
    }
    const told = writers.get(write)?.write.told
    if (kind === 'rejected') {
      if (BigInt(token) >= BigInt(mark)) fail(`a write with token ${token} was refused though none above it was seen`)
      if (told === 'wrote') fail('a write that was refused was told to be done')
      continue
    }
    if (!writers.has(write)) fail(`a write was accepted that nobody made, with token ${token}`)
    if (accepted.has(write)) fail('a write was accepted twice')
    accepted.add(write)
    if (told === 'refused') fail('a write that was accepted was told to be refused')
    if (newest && BigInt(token) < BigInt(newest.token))
      fail(`a write with token ${token} was accepted after one with ${newest.token}`, [
        ...opOf(newest.write),
        ...opOf(write),
      ])
    else newest = decision
    if (run.fence && BigInt(token) < BigInt(mark))
      fail(`a write with token ${token} passed a fence that had seen ${mark}`)
  }
  return violations
}
