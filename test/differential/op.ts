import type { Asker, Name } from '../../src/stores/rules/name.ts'
import type { NameState } from '../../src/stores/rules/state.ts'

/** A request, as the rules see it. `token`: of the server. */
export type Op =
  | { readonly verb: 'acquire'; readonly asker: Asker }
  | { readonly verb: 'renew'; readonly id: string; readonly ttl: number }
  | { readonly verb: 'annotate'; readonly id: string; readonly note: string }
  | { readonly verb: 'release'; readonly id: string }
  | { readonly verb: 'break'; readonly slot?: number | undefined; readonly token?: bigint | undefined }
  | { readonly verb: 'inspect' }
  /** The store looks, because time has passed. */
  | { readonly verb: 'look' }

/** What the rules answer. Tokens are those of the rules, which count from 1. */
export type Ruling =
  | { readonly verb: 'acquire'; readonly held: true; readonly token: number; readonly slots: readonly number[] }
  | { readonly verb: 'acquire'; readonly held: false; readonly ahead: number; readonly retryAfter: number }
  | {
      readonly verb: 'renew'
      readonly grant: { readonly token: number; readonly slots: readonly number[] } | undefined
    }
  | { readonly verb: 'annotate'; readonly held: boolean }
  | { readonly verb: 'release'; readonly answer: 'released' | 'gone' }
  | { readonly verb: 'break'; readonly token: number | undefined }
  | { readonly verb: 'inspect' }
  | { readonly verb: 'look' }

/** Carries out the request. `tokenOf`: the token of the rules for one of the server. */
export function decide(name: Name, op: Op, tokenOf: (token: bigint) => number): Ruling {
  if (op.verb === 'acquire') return { verb: 'acquire', ...name.acquire(op.asker) }
  if (op.verb === 'renew') return { verb: 'renew', grant: name.renew(op.id, op.ttl) }
  if (op.verb === 'annotate') return { verb: 'annotate', held: name.annotate(op.id, op.note) }
  if (op.verb === 'release') return { verb: 'release', answer: name.release(op.id) }
  if (op.verb === 'inspect' || op.verb === 'look') return op
  const token = op.token === undefined ? undefined : tokenOf(op.token)
  return { verb: 'break', token: name.break({ slot: op.slot, token })?.token }
}

export function idOf(op: Op): string | undefined {
  if (op.verb === 'acquire') return op.asker.id
  return 'id' in op ? op.id : undefined
}

/** All but the times. */
export function shapeOf({ holders, waiters, gone, token }: NameState): unknown[] {
  return [
    holders.map(({ id, slots, limit, token, note }) => [id, slots, limit, token, note]),
    waiters.map(({ id, units, limit, isPassed }) => [id, units, limit, isPassed]),
    [...gone.keys()],
    token,
  ]
}
