import { LeaseError } from '../../contract/errors.ts'
import type { Busy, Claim, Grant, LeaseRecord, NoneGranted, Selection, SomeGranted } from '../../contract/store.ts'
import { requestLimit, roundTripOf } from '../../contract/time.ts'
import type { Connections } from '../shared/connections.ts'
import type { PostgresConnection } from './connection.ts'
import { exhausted } from './exhausted.ts'
import { stateOf } from './failure.ts'
import type { Names } from './names.ts'
import type { Answer as Acquired } from './requests.ts'

/** SQLSTATE if others acquired a part of what was selected. All of it was rolled back. */
const CONFLICT = '40001'

/** What the function answers; see `acquireSome`. */
type Answer =
  | readonly ['late']
  | readonly ['gated', gate?: Acquired]
  | readonly ['few', free: number, holder: readonly [index: number, ...Holder] | null, names?: readonly Acquired[]]
  | readonly ['held', tokens: readonly (readonly [index: number, token: string])[]]
type Holder = [remaining: number, token: string, owner: string, note: string]

/** When a claim that was answered so asks again. */
type WaitOf = (claim: Claim, answer: Acquired) => Omit<Busy, 'held' | 'holder'>

/** Acquires some of several names in one statement. Without a `channel` nobody is notified. Rejects with a `LeaseError`. */
export async function askFor(
  connections: Connections<PostgresConnection>,
  names: Names,
  { claims, want, gate }: Selection,
  channel: string | undefined,
  waitOf: WaitOf,
): Promise<SomeGranted | NoneGranted> {
  const until = performance.now() + requestLimit(gate.ttl)
  const statement = `select ${names.call('acquire_some')}($1, $2, $3::integer, ${channel ? '$4' : 'null'}), $0`
  const ask = async (connection: PostgresConnection, sent: number): Promise<Answer> => {
    const [asked, ...orders] = [gate, ...claims].map((claim, i) => ({
      i: Math.max(i - 1, 0),
      ...claim,
      round_trip: roundTripOf(claim.roundTrip ?? connection.clock.roundTrip),
      until: connection.clock.at(until),
    }))
    let text: unknown
    try {
      text = await connection.ask(statement, [
        JSON.stringify(orders),
        JSON.stringify(asked),
        String(want),
        ...(channel ? [channel] : []),
      ])
    } catch (error) {
      if (stateOf(error) === CONFLICT) return ['gated']
      throw error
    }
    const [time, answer] = JSON.parse(String(text)) as [number, Answer]
    connection.clock.learn(time, sent)
    return answer
  }
  for (;;) {
    const answer = await connections.run(ask)
    if (answer[0] !== 'late') return read(answer, claims, gate, waitOf)
    if (performance.now() >= until)
      throw new LeaseError('STORE_UNAVAILABLE', 'the request reached PostgreSQL after its limit, and nothing was done')
  }
}

function read(answer: Answer, claims: readonly Claim[], gate: Claim, waitOf: WaitOf): SomeGranted | NoneGranted {
  const found = answer[0] === 'gated' ? [answer[1]] : answer[0] === 'few' ? answer[3] : undefined
  if (found?.some(each => each?.[0] === 'exhausted')) throw exhausted()
  if (answer[0] === 'held') {
    const tokens = new Map(answer[1])
    const grantOf = ({ ttl }: Claim, index: number): Grant | undefined => {
      const token = tokens.get(index)
      return token === undefined ? undefined : { held: true, token: BigInt(token), ttl }
    }
    return { held: true, grants: claims.map(grantOf) }
  }
  if (answer[0] !== 'few') return { held: false, isGated: true, free: 0, wait: answer[1] && waitOf(gate, answer[1]) }
  const [, free, first, busy] = answer
  const holder = first ? holderOf(first, claims) : undefined
  const waits = busy?.map((each, index) => waitOf({ ...(claims[index] as Claim), queue: true }, each))
  if (!waits) return { held: false, isGated: false, free, holder }
  const retryAfter = Math.min(gate.ttl / 3, ...waits.map(wait => wait.retryAfter))
  return { held: false, isGated: false, free, holder, wait: { retryAfter, listens: waits[0]?.listens } }
}

function holderOf(
  [index, remaining, token, owner, note]: readonly [number, ...Holder],
  claims: readonly Claim[],
): LeaseRecord {
  return { name: claims[index]?.name ?? '', state: 'held', owner, note, token: BigInt(token), remaining }
}
