import { checkKeys, invalid } from '../../contract/check.ts'
import type { Guarantees, Store } from '../../contract/store.ts'
import { type Clock, systemClock } from '../../contract/time.ts'
import { type MinTtl, withMinTtl } from '../url/min-ttl.ts'
import { guaranteesOf } from './guarantees.ts'
import type { Register } from './register.ts'
import { CasStore } from './store.ts'

export type { Entry, Listed, Register } from './register.ts'

export interface CasOptions extends MinTtl {
  /** The kind of store, for people, such as `dynamodb`. @default 'cas' */
  readonly kind?: string | undefined
  /** What is special about the system. Its `limits` are added to those of every register. */
  readonly guarantees?: Partial<Guarantees> | undefined
  /** For tests. @default the clocks of this process */
  readonly clock?: Clock | undefined
}

const optionKeys: ReadonlySet<string> = new Set(['kind', 'guarantees', 'clock', 'minTtl'])

/**
 * A store over any system that writes a record only if its version is still the expected one. The register reads and writes
 * records. Everything else is done here: who holds, the queue, tokens, waiting, lost answers.
 * @throws LeaseError INVALID_ARGUMENT if the register has no read, write or list.
 */
export function cas<Version>(register: Register<Version>, options: CasOptions = {}): Store {
  for (const verb of ['read', 'write', 'list'] as const)
    if (typeof register?.[verb] !== 'function')
      throw invalid(`cas(register) needs a register with the function ${verb}`)
  if (!(register.maxBytes > 0))
    throw invalid('cas(register) needs a register with maxBytes, the largest value in bytes')
  checkKeys(options, optionKeys, 'cas')
  const { kind = 'cas', guarantees, clock = observer(), minTtl } = options
  const all = guaranteesOf(register, guarantees)
  return withMinTtl(new CasStore(register, kind, all, clock), minTtl)
}

/**
 * The clock of an observer. It must never say that more time has passed than has, as that of a holder does when the wall
 * clock is set forward.
 */
function observer(): Clock {
  return { ...systemClock(), now: () => performance.now() }
}
