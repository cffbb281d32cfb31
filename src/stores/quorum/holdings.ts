import type { LeaseRecord } from '../../contract/store.ts'
import type { Holding, Sight } from './member.ts'

/** The holdings of the claim that has the most. */
export function mostAlike(holdings: readonly Holding[]): readonly Holding[] {
  const byId = new Map<string, Holding[]>()
  let most: Holding[] = []
  for (const holding of holdings) {
    const alike = byId.get(holding.id) ?? []
    alike.push(holding)
    byId.set(holding.id, alike)
    if (alike.length > most.length) most = alike
  }
  return most
}

/** The token that most of them have, which is that of the lease. Of equally many it is the lower one: a late vote is higher. */
export function commonToken(holdings: readonly { readonly token: number }[]): number {
  const counts = new Map<number, number>()
  let common = 0
  for (const { token } of holdings) {
    const count = (counts.get(token) ?? 0) + 1
    counts.set(token, count)
    const most = counts.get(common) ?? 0
    if (count > most || (count === most && token < common)) common = token
  }
  return common
}

/** The holding with the latest note. Some nodes may have missed that note. */
export function latest(holdings: readonly Holding[]): Holding | undefined {
  return holdings.toSorted((a, b) => b.revision - a.revision)[0]
}

/** The records of a name from the answers of the nodes. `missing` nodes did not answer. */
export function recordsOf(name: string, sights: readonly Sight[], majority: number, missing: number): LeaseRecord[] {
  const held = mostAlike(sights.flatMap(({ holder }) => holder ?? []))
  const holder = latest(held)
  const records: LeaseRecord[] = []
  // If nodes are missing, the vote may be a lease. Showing one vote too many is better than hiding a lease.
  if (holder && held.length + missing >= majority) {
    const { owner, note } = holder
    const remaining = held.map(each => each.remaining).sort((a, b) => b - a)[majority - 1] ?? holder.remaining
    records.push({ name, state: 'held', owner, token: BigInt(commonToken(held)), note, remaining })
  }
  return [...records, ...waiters(name, sights, records.length > 0 ? holder?.id : undefined)]
}

/** The records of the waiters. Each node has its own queue, so a waiter's position is that of the mean. */
function waiters(name: string, sights: readonly Sight[], holder: string | undefined): LeaseRecord[] {
  const byId = new Map<string, { places: number[]; record: LeaseRecord }>()
  for (const { queue } of sights) {
    for (const [place, { id, owner, note, remaining }] of queue.entries()) {
      if (id === holder) continue
      const known = byId.get(id)
      if (known) known.places.push(place)
      else byId.set(id, { places: [place], record: { name, state: 'waiting', owner, note, remaining } })
    }
  }
  return Array.from(byId.values(), ({ places, record }) => ({ mean: mean(places), record }))
    .sort((a, b) => a.mean - b.mean)
    .map(({ record }, position) => ({ ...record, position }))
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}
