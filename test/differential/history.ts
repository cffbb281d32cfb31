import fc from 'fast-check'
import { LARGEST_LIMIT } from '../../src/contract/store.ts'
import { TURN } from '../../src/contract/time.ts'

/** Of the ttl of a claim, for which it is renewed. */
export const LARGEST_FACTOR = 2

/** One of the claims of a history. */
export interface Demand {
  readonly limit: number
  readonly units: number
  readonly queue: boolean
  /** Does its lease end if it is not renewed during the history? */
  readonly isBrief: boolean
  readonly roundTrip: number
  /** Is it watched while it waits? If not, its process has died. */
  readonly isWatched: boolean
}

/** One request. `claim` and `client` are numbers: of a claim of the history, and of a client of the engine. */
export type Request = { readonly client: number } & (
  | { readonly verb: 'acquire'; readonly claim: number }
  /** A copy that states another limit, and one unit. */
  | { readonly verb: 'copy'; readonly claim: number; readonly limit: number }
  | { readonly verb: 'renew'; readonly claim: number; readonly factor: number }
  | { readonly verb: 'annotate'; readonly claim: number; readonly note: string }
  | { readonly verb: 'release'; readonly claim: number }
  | { readonly verb: 'break'; readonly slot?: number; readonly claim?: number }
  | { readonly verb: 'inspect' }
)

export type Step =
  | Request
  | { readonly verb: 'together'; readonly requests: readonly Request[] }
  /** `early`: before it is sent. */
  | { readonly verb: 'abort'; readonly request: Request; readonly early: boolean }
  | { readonly verb: 'wait'; readonly ms: number }
  /** The clock is set back. */
  | { readonly verb: 'back'; readonly ms: number }
  /** The name is released, and after so many milliseconds one of the first waiters asks. */
  | { readonly verb: 'hand over'; readonly ms: number; readonly to: number }
  /** Each waiter that was woken asks. */
  | { readonly verb: 'follow' }
  /** Whoever must be woken is. */
  | { readonly verb: 'settle' }

export interface History {
  readonly demands: readonly Demand[]
  readonly steps: readonly Step[]
}

const limits = fc.constantFrom(1, 1, 2, 2, 3, 3, LARGEST_LIMIT)

const demand: fc.Arbitrary<Demand> = fc
  .record({
    limit: limits,
    units: fc.constantFrom(1, 1, 1, 1, 1, 2, 2, 3, 20),
    queue: fc.constantFrom(true, true, true, false),
    isBrief: fc.constantFrom(false, false, true),
    roundTrip: fc.constantFrom(0, 0, 0, 150),
    isWatched: fc.constantFrom(true, true, false),
  })
  .map(given => ({ ...given, units: Math.min(given.limit, given.units) }))

/** At most this many claims, and steps. `brief`: the ttl of brief leases. */
export function histories(brief: number, steps: number): fc.Arbitrary<History> {
  const client = fc.nat(2)
  const claim = fc.nat(4)
  const acquire = fc.record({ verb: fc.constant('acquire'), client, claim })
  const release = fc.record({ verb: fc.constant('release'), client, claim })
  const copy = fc.record({ verb: fc.constant('copy'), client, claim, limit: limits })
  const request: fc.Arbitrary<Request> = fc.oneof(
    { arbitrary: acquire, weight: 12 },
    { arbitrary: release, weight: 5 },
    {
      arbitrary: fc.record({
        verb: fc.constant('renew'),
        client,
        claim,
        factor: fc.constantFrom(1, 1, LARGEST_FACTOR),
      }),
      weight: 2,
    },
    {
      arbitrary: fc.record({ verb: fc.constant('annotate'), client, claim, note: fc.constantFrom('a', 'b') }),
      weight: 1,
    },
    {
      arbitrary: fc.record(
        { verb: fc.constant('break'), client, slot: fc.nat(3), claim },
        { requiredKeys: ['verb', 'client'] },
      ),
      weight: 1,
    },
    { arbitrary: fc.record({ verb: fc.constant('inspect'), client }), weight: 2 },
  )
  /** An acquire whose claim is withdrawn meanwhile. */
  const crossing = fc.tuple(client, client, claim).map(([one, other, claim]): Request[] => [
    { verb: 'acquire', client: one, claim },
    { verb: 'release', client: other, claim },
  ])
  const ms = fc.constantFrom(1, TURN + 20, TURN + 20, 3 * TURN, Math.ceil(1.1 * brief), 1_030)
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: request, weight: 24 },
    { arbitrary: copy, weight: 1 },
    {
      arbitrary: fc.record({
        verb: fc.constant('together'),
        requests: fc.oneof(
          { arbitrary: fc.array(request, { minLength: 2, maxLength: 3 }), weight: 2 },
          { arbitrary: crossing, weight: 1 },
        ),
      }),
      weight: 3,
    },
    { arbitrary: fc.record({ verb: fc.constant('abort'), request, early: fc.boolean() }), weight: 1 },
    { arbitrary: fc.record({ verb: fc.constant('wait'), ms }), weight: 3 },
    { arbitrary: fc.record({ verb: fc.constant('back'), ms: fc.constant(5_000) }), weight: 1 },
    {
      arbitrary: fc.record({
        verb: fc.constant('hand over'),
        ms: fc.constantFrom(0, TURN + 20, TURN + 170),
        to: fc.constantFrom(0, 1, 1, 2),
      }),
      weight: 3,
    },
    { arbitrary: fc.constant({ verb: 'follow' }), weight: 4 },
    { arbitrary: fc.constant({ verb: 'settle' }), weight: 1 },
  )
  return fc.record({
    demands: fc.array(demand, { minLength: 5, maxLength: 5 }),
    steps: fc.array(step, { minLength: 1, maxLength: steps, size: 'max' }),
  })
}
