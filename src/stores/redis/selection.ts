import type { Claim, NoneGranted, Selection, SomeGranted } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import type { Keys } from './keys.ts'
import { detailsOf, holderOf } from './record.ts'
import type { ScriptRequest } from './requests.ts'
import { GONE } from './script.ts'

/** The request that acquires some of several names. `memory`: milliseconds for which a name keeps its last token. */
export function selectionRequest(keys: Keys, { claims, want, gate }: Selection, memory: number): ScriptRequest {
  const { ttl = 0, owner = '', note = '' } = claims[0] ?? {}
  const named = claims.map(({ id, name }) => ({ id, key: keys.lease(name) }))
  const list = named.map(({ id, key }) => `${id}${key}\n`).join('')
  return {
    verb: 'acquireSome',
    key: keys.lease(gate),
    id: '-',
    parameters: `${ttl} ${ttl + memory} 0 ${want}\n${list}${detailsOf({ owner, note })}`,
    others: [...named.map(({ key }) => key), ...named.map(({ id, key }) => key + GONE + id)],
    limit: requestLimit(ttl),
  }
}

/** Reads `+token token …`, or `-gated free index remaining token details`. */
export function readSelection(answer: string, claims: readonly Claim[]): SomeGranted | NoneGranted {
  const [first = '', ...words] = answer.slice(1).split(' ')
  if (answer.startsWith('+')) {
    const tokens = [first, ...words]
    const grants = claims.map(({ ttl }, index) => {
      const token = tokens[index]
      return token && token !== '-' ? { held: true as const, token: BigInt(token), ttl } : undefined
    })
    return { held: true, grants }
  }
  const [free = '', index, remaining, ...lease] = words
  const name = claims[Number(index) - 1]?.name
  const holder = name === undefined ? undefined : holderOf(name, lease.join(' '), Number(remaining))
  return { held: false, isGated: first === '1', free: Number(free), holder }
}
