import type { LeaseRecord } from '../../contract/store.ts'
import type { Holder, NameState } from './state.ts'

/** The public records of a name: the holders by their lowest slot, then the waiters in order. */
export function recordsOf(name: string, { holders, waiters }: NameState, now: number): LeaseRecord[] {
  const bySlot = holders.toSorted((a, b) => (a.slots[0] ?? 0) - (b.slots[0] ?? 0))
  return [
    ...bySlot.map(holder => held(name, holder, now)),
    ...waiters.map(({ owner, note, lapses, limit, units }, position): LeaseRecord => {
      const record: LeaseRecord = { name, state: 'waiting', owner, note, remaining: lapses - now, position }
      return limit === 1 ? record : { ...record, limit, units }
    }),
  ]
}

/** The holder whose lease the claim must wait for the longest, unless it is renewed. */
export function holderOf(name: string, { holders }: NameState, now: number): LeaseRecord | undefined {
  const [first, ...others] = holders
  if (!first) return undefined
  return held(
    name,
    others.reduce((last, each) => (each.expires > last.expires ? each : last), first),
    now,
  )
}

function held(name: string, { owner, note, token, expires, limit, slots }: Holder, now: number): LeaseRecord {
  const record: LeaseRecord = { name, state: 'held', owner, token: BigInt(token), note, remaining: expires - now }
  return limit === 1 ? record : { ...record, limit, slots }
}
