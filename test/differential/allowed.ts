import type { Busy, Grant, LeaseRecord } from '../../src/contract/store.ts'
import { LONGEST_REQUEST } from '../../src/contract/time.ts'
import type { Holder, NameState, Waiter } from '../../src/stores/rules/state.ts'
import { idOf, type Op } from './op.ts'
import { isOneStep, type Outcome, type Possible, type Slack, type Watching, type Window } from './possible.ts'

/** What the server answered. */
export type Answer = Grant | Busy | undefined | boolean | 'released' | 'gone' | bigint | readonly LeaseRecord[]

/** What the differential test does not compare of an engine. */
export interface Leniency extends Slack {
  /** It does not know, or not exactly, when leases and positions end. */
  readonly knowsNoEnds?: boolean
  /**
   * Does it not count, in `ahead`, claims that join the queue at the same time? That number is for people. A tombstone of that
   * time keeps the claim from joining, and refuses it when it asks again.
   */
  readonly countsLate?: boolean
  /** May `ahead` count waiters that were passed, until the watch of the client has reported it? */
  readonly countsPassed?: boolean
  /**
   * The `retryAfter` of a claim whose request found the name locked by another one, such as one that keeps positions.
   * Such an answer that the rules do not allow decides nothing.
   */
  readonly ifLocked?: number
  /** Does it keep the position of each waiter that is watched, whatever it answered before? @default after `kept` only */
  readonly keepsWatched?: boolean | 'perhaps'
}

const TINY = 0.01

type Tokens = ReadonlyMap<number, bigint>

/** The rules do not allow the answer. */
class Mismatch extends Error {}

/** The state after the answer, or why the rules do not allow it. */
export function allowed(
  outcome: Outcome,
  op: Op,
  answer: Answer,
  window: Window,
  watching: Watching,
  leniency: Leniency,
  isAlone: boolean,
): Possible | string {
  try {
    const tokens = check(outcome, op, answer, window, watching, leniency, isAlone)
    return { ...outcome.to, tokens }
  } catch (error) {
    if (error instanceof Mismatch) return error.message
    throw error
  }
}

function check(
  { ruling, retry, seen, to }: Outcome,
  op: Op,
  answer: Answer,
  window: Window,
  { kept }: Watching,
  leniency: Leniency,
  isAlone: boolean,
): Tokens {
  const { tokens } = to
  const precision = leniency.precision + TINY
  if (ruling.verb === 'inspect') return sees(seen, answer as readonly LeaseRecord[], tokens, window, kept, leniency)
  if (ruling.verb === 'look') return tokens
  if (ruling.verb === 'annotate') return same('held', ruling.held, answer, tokens)
  if (ruling.verb === 'release') return same('the answer', ruling.answer, answer, tokens)
  if (ruling.verb === 'break') {
    same('broken', ruling.token !== undefined, answer !== undefined, tokens)
    return ruling.token === undefined ? tokens : learn(tokens, ruling.token, answer as bigint)
  }
  const given = answer as Grant | Busy | undefined
  const grant = ruling.verb === 'renew' ? ruling.grant : ruling.held ? ruling : undefined
  same('held', grant !== undefined, given?.held === true, tokens)
  if (grant && given?.held) {
    same('slots', grant.slots, given.slots ?? [0], tokens)
    const ttl = op.verb === 'acquire' ? op.asker.ttl : op.verb === 'renew' ? op.ttl : 0
    const least = leniency.lasts(ttl) - (window.received - window.sent) - precision
    if (given.ttl < least) throw new Mismatch(`the ttl should be at least ${least}, not ${given.ttl}`)
    const end = to.late.holders.find(({ id }) => id === idOf(op))?.expires ?? Infinity
    const most = end - window.sent + precision
    if (given.ttl > most) throw new Mismatch(`the ttl should be at most ${most}, not ${given.ttl}`)
    return learn(tokens, grant.token, given.token)
  }
  if (ruling.verb !== 'acquire' || ruling.held || !given || given.held) return tokens
  const { ahead, retryAfter, holder } = given
  // Does the answer count everything that was decided before?
  const counts = isAlone || (isOneStep(leniency) && !leniency.countsLate)
  // It was withdrawn, so it asks no more. That a name is held can be answered without a look for a tombstone.
  if (to.early.gone.has(idOf(op) as string))
    return counts && op.verb === 'acquire' && op.asker.queue
      ? same('retryAfter', LONGEST_REQUEST, retryAfter, tokens)
      : tokens
  const passed = leniency.countsPassed ? to.early.waiters.filter(({ isPassed }) => isPassed).length : 0
  const isLate = ahead !== undefined && ahead > ruling.ahead && ahead <= ruling.ahead + passed
  if (ahead !== undefined && counts && !isLate) same('ahead', ruling.ahead, ahead, tokens)
  const [shortest, longest] = retry as readonly [number, number]
  // A waiter that is kept is woken in time. Where nobody knows when others end, a claim that does not queue may ask late.
  const mayBeLate = given.kept || (leniency.knowsNoEnds && op.verb === 'acquire' && !op.asker.queue)
  if (retryAfter > longest + precision && !mayBeLate)
    throw new Mismatch(`retryAfter should be at most ${longest}, not ${retryAfter}`)
  // A request that comes too soon costs only time.
  if (retryAfter < shortest - precision && leniency.precision === 0)
    throw new Mismatch(`retryAfter should be at least ${shortest}, not ${retryAfter}`)
  if (!holder) return tokens
  const found = seen[0].holders.find(({ owner }) => owner === holder.owner)
  if (!found) throw new Mismatch(`${holder.owner} does not hold`)
  return shows(found, holder, tokens)
}

function sees(
  [early, late]: Outcome['seen'],
  records: readonly LeaseRecord[],
  tokens: Tokens,
  { sent, received }: Window,
  kept: ReadonlySet<string>,
  { knowsNoEnds, precision }: Leniency,
): Tokens {
  const lowest = ({ slots: [slot = 0] }: Holder): number => slot
  const holders = early.holders.toSorted((a, b) => lowest(a) - lowest(b))
  const expected = [...holders.map(({ owner }) => owner), ...early.waiters.map(({ owner }) => owner)]
  const isIn = (remaining: number, from: number, to: number): void => {
    if (knowsNoEnds || (remaining >= from - received - precision - TINY && remaining <= to - sent + precision + TINY))
      return
    throw new Mismatch(`remaining should be from ${from - received} to ${to - sent}, not ${remaining}`)
  }
  same(
    'owners',
    expected,
    records.map(({ owner }) => owner),
    tokens,
  )
  let known = tokens
  for (const [index, record] of records.entries()) {
    const holder = holders[index]
    if (holder) {
      known = shows(holder, record, known)
      isIn(record.remaining, holder.expires, endOf(late.holders, holder.id))
      continue
    }
    const position = index - holders.length
    const { note, limit, units, lapses, id } = early.waiters[position] as Waiter
    const { state, limit: shown = 1, units: wanted = 1 } = record
    same('the waiter', ['waiting', note, limit, units, position], [state, record.note, shown, wanted, record.position])
    if (!kept.has(id)) isIn(record.remaining, lapses, late.waiters[position]?.lapses ?? lapses)
  }
  return known
}

function endOf(holders: NameState['holders'], id: string): number {
  return holders.find(holder => holder.id === id)?.expires ?? Infinity
}

function shows(holder: Holder, record: LeaseRecord, tokens: Tokens): Tokens {
  const { state, owner, note, limit = 1, slots = [0], token } = record
  same(
    'the holder',
    ['held', holder.owner, holder.note, holder.limit, holder.slots],
    [state, owner, note, limit, slots],
  )
  return token === undefined ? tokens : learn(tokens, holder.token, token)
}

/** The tokens with one more. They rise with those of the rules. */
function learn(tokens: Tokens, token: number, real: bigint): Tokens {
  for (const [other, known] of tokens) {
    if (other < token ? known < real : other > token ? known > real : known === real) continue
    throw new Mismatch(`the token ${real} of grant ${token} is at odds with the token ${known} of grant ${other}`)
  }
  return new Map(tokens).set(token, real)
}

function same(what: string, expected: unknown, actual: unknown, tokens: Tokens = new Map()): Tokens {
  const [should, is] = [JSON.stringify(expected), JSON.stringify(actual)]
  if (should !== is) throw new Mismatch(`${what} should be ${should}, not ${is}`)
  return tokens
}
