import type { Store } from '../../../src/contract/store.ts'
import type { Member } from '../../../src/stores/quorum/member.ts'

/** It does some of its verbs otherwise. */
export function change<Target extends Member | Store>(target: Target, changed: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, key) {
      const verb = changed[key as keyof Target] ?? target[key as keyof Target]
      return typeof verb === 'function' ? verb.bind(target) : verb
    },
  })
}
