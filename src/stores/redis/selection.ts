import type { Claim, NoneGranted, Selection, SomeGranted } from '../../contract/store.ts'
import type { Keys } from './keys.ts'
import { detailsOf, holderOf } from './record.ts'
import type { ScriptRequest } from './requests.ts'

/** What a request needs that acquires some of several names. `memory`: milliseconds for which a name keeps its last token. */
export function selectionRequest(
  keys: Keys,
  { claims, want, gate }: Selection,
  memory: number,
): Required<Pick<ScriptRequest, 'parameters' | 'others'>> {
  const { ttl = 0, owner = '', note = '' } = claims[0] ?? {}
  const others = claims.map(({ name }) => keys.lease(name))
  const list = `${others.join('\n')}\n${detailsOf({ owner, note })}`
  return {
    parameters: `${ttl} ${ttl + memory} ${gate.queue ? 1 : 0} ${want} ${gate.ttl} ${detailsOf(gate)}\n${list}`,
    others,
  }
}

/** If it waits: since when the name of the gate, or the first of the names, is free, or when it will be. */
interface Waits {
  readonly freeAt: number
  readonly ahead: number
}

/** Reads `+token token …`, or `-gated free freeAt ahead index remaining token details`. */
export function readSelection(answer: string, claims: readonly Claim[]): SomeGranted | (NoneGranted & Waits) {
  const [first = '', ...words] = answer.slice(1).split(' ')
  if (answer.startsWith('+')) {
    const tokens = [first, ...words]
    const grants = claims.map(({ ttl }, index) => {
      const token = tokens[index]
      return token && token !== '-' ? { held: true as const, token: BigInt(token), ttl } : undefined
    })
    return { held: true, grants }
  }
  const isGated = first === '1'
  const [free, freeAt, ahead, index, remaining, ...lease] = words
  const name = isGated ? undefined : claims[Number(index) - 1]?.name
  const holder = name === undefined ? undefined : holderOf(name, lease.join(' '), Number(remaining))
  return { held: false, isGated, free: Number(free), holder, freeAt: Number(freeAt || 0), ahead: Number(ahead || 0) }
}
