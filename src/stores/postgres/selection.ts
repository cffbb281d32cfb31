import { LeaseError } from '../../contract/errors.ts'
import type { Claim, Grant, LeaseRecord, NoneGranted, Selection, SomeGranted } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import type { Connections } from '../shared/connections.ts'
import type { PostgresConnection } from './connection.ts'
import { stateOf } from './failure.ts'
import type { Names } from './names.ts'

/** SQLSTATE if others acquired a part of what was selected. All of it was rolled back. */
const CONFLICT = '40001'

/** What the function answers; see `acquireSome`. */
type Answer =
  | readonly ['late' | 'gated']
  | readonly ['few', free: number, holder: readonly [index: number, ...Holder] | null]
  | readonly ['held', tokens: readonly (readonly [index: number, token: string])[]]
type Holder = [remaining: number, token: string, owner: string, note: string]

/** Acquires some of several names in one statement. Rejects with a `LeaseError`. */
export async function askFor(
  connections: Connections<PostgresConnection>,
  names: Names,
  { claims, want, gate }: Selection,
): Promise<SomeGranted | NoneGranted> {
  const until = performance.now() + requestLimit(claims[0]?.ttl ?? 0)
  const statement = `select ${names.call('acquire_some')}($1, $2, $3::integer), $0`
  const ask = async (connection: PostgresConnection, sent: number): Promise<Answer> => {
    const orders = claims.map((claim, i) => ({ i, ...claim, until: connection.clock.at(until) }))
    let text: unknown
    try {
      text = await connection.ask(statement, [JSON.stringify(orders), gate, String(want)])
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
    if (answer[0] !== 'late') return read(answer, claims)
    if (performance.now() >= until)
      throw new LeaseError('STORE_UNAVAILABLE', 'the request reached PostgreSQL after its limit, and nothing was done')
  }
}

function read(answer: Answer, claims: readonly Claim[]): SomeGranted | NoneGranted {
  if (answer[0] === 'held') {
    const tokens = new Map(answer[1])
    const grantOf = ({ ttl }: Claim, index: number): Grant | undefined => {
      const token = tokens.get(index)
      return token === undefined ? undefined : { held: true, token: BigInt(token), ttl }
    }
    return { held: true, grants: claims.map(grantOf) }
  }
  if (answer[0] !== 'few') return { held: false, isGated: true, free: 0 }
  const [, free, found] = answer
  return { held: false, isGated: false, free, holder: found ? holderOf(found, claims) : undefined }
}

function holderOf(
  [index, remaining, token, owner, note]: readonly [number, ...Holder],
  claims: readonly Claim[],
): LeaseRecord {
  return { name: claims[index]?.name ?? '', state: 'held', owner, note, token: BigInt(token), remaining }
}
