import type { Event } from '../history.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'
import { sharing } from './sharing.ts'

/**
 * Mutual exclusion as the resource sees it: no accepted write has a lower token than an earlier one, each is accepted once,
 * the resource obeys its rule, and each writer is answered what was decided.
 */
export function safety(trace: Trace): Violation[] {
  const judged = [...trace.decisions].flatMap(([name, decisions]) => judge(trace, name, decisions))
  return [...judged, ...undecided(trace), ...sharing(trace)]
}

/** Answers without a decision: the resource is wrong, or the log is incomplete. */
function undecided({ writers }: Trace): Violation[] {
  return [...writers.values()].flatMap(({ write: { at, answer, decision }, acquisition: { name, op } }) => {
    if (decision || !answer || answer === 'unsure') return []
    const what = `a write was answered as ${answer === 'wrote' ? 'done' : 'refused'}, but the resource did not decide it`
    return [{ promise: 'safety' as const, at, name, what, ops: [op] }]
  })
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
    const answer = writers.get(write)?.write.answer
    if (kind === 'rejected') {
      if (BigInt(token) >= BigInt(mark)) fail(`a write with token ${token} was refused although no higher one was seen`)
      if (answer === 'wrote') fail('a refused write was answered as done')
      continue
    }
    if (!writers.has(write)) fail(`an unknown write with token ${token} was accepted`)
    if (accepted.has(write)) fail('a write was accepted twice')
    accepted.add(write)
    if (answer === 'refused') fail('an accepted write was answered as refused')
    if (run.shared?.[name])
      newest = undefined // each slot has its own tokens
    else if (newest && BigInt(token) < BigInt(newest.token))
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
