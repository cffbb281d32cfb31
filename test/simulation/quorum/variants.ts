import type { Claim, Grant, Store } from '../../../src/contract/store.ts'
import { change } from './change.ts'
import type { Climate } from './faults.ts'
import type { Variant } from './simulate.ts'

interface Wrong {
  readonly variant: Variant
  /** What the checks say of it. */
  readonly caught: RegExp
  /** Where it shows soonest. */
  readonly climate: Climate
}

const twoHolders = /while \d+ believes to hold it|is told that it holds/
const tokensFall = /was (handed out|granted) (after|twice)/

/** Needs a schedule that chance does not come upon: see scenes.test.ts. */
export const acksOfAnyNode: Variant = {
  flaw: { commitsAll: true },
  member: (member, index, members) =>
    change(member, {
      commit: (...asked) => (members[(index + 1) % members.length] ?? member).commit(...asked),
    }),
}

/** Wrong in one way each. */
export const variants: Readonly<Record<string, Wrong>> = {
  'a token that is not written back to a majority': {
    variant: { member: member => change(member, { commit: async () => ({ value: true, votesIn: 0 }) }) },
    caught: tokensFall,
    climate: 'frantic',
  },
  'nodes that vote as soon as they run again': {
    variant: { flaw: { isTrusting: true } },
    caught: twoHolders,
    climate: 'forgetful',
  },
  'a renewal by a minority that is taken for good': {
    variant: { store: store => remembering(store, last => last) },
    caught: twoHolders,
    climate: 'lossy',
  },
  'a renewal that never restores what a node forgot': {
    variant: {
      member: member =>
        change(member, {
          renew: async (claim, restore, number) =>
            restore ? { value: { state: 'free', token: 0 }, votesIn: 0 } : member.renew(claim, restore, number),
        }),
    },
    caught: /was lost although a majority was well/,
    climate: 'rolling',
  },
  'a note that is acknowledged by nodes which do not have it': {
    variant: {
      member: (member, index) =>
        index === 0
          ? member
          : change(member, { annotate: async () => ({ value: { state: 'held', token: 0 }, votesIn: 0 }) }),
    },
    caught: /the note \d+ was written, and/,
    climate: 'rolling',
  },
  'a release that leaves the token as it is': {
    variant: { flaw: { keepsToken: true } },
    caught: /a renewal brought back what was released/,
    climate: 'forgetful',
  },
  'votes that are not given back after a tie': {
    variant: { member: member => change(member, { concede: async () => ({ value: true, votesIn: 0 }) }) },
    caught: /although it was (given up|waited for)/,
    climate: 'calm',
  },
  'a ttl that counts from the answer': {
    variant: {
      store: (store, machine) => {
        const longer = async <Answer extends object | undefined>(answer: Promise<Answer>): Promise<Answer> => {
          const sent = machine.now()
          const given = await answer
          return given && 'ttl' in given ? { ...given, ttl: Number(given.ttl) + machine.now() - sent } : given
        }
        return change(store, {
          acquire: (claim, signal) => longer(store.acquire(claim, signal)),
          renew: (claim, signal) => longer(store.renew(claim, signal)),
        })
      },
    },
    caught: twoHolders,
    climate: 'lossy',
  },
}

/** What a renewal that failed is taken for. */
function remembering(store: Store, answer: (last: Grant | undefined) => Grant | undefined): Store {
  let last: Grant | undefined
  return change(store, {
    async renew(claim: Claim, signal) {
      try {
        const grant = await store.renew(claim, signal)
        last = grant
        return grant
      } catch (error) {
        const grant = answer(last)
        if (grant) return grant
        throw error
      }
    },
  })
}
